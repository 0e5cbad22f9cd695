/** How long a model stays loaded, by an injected clock; the runner is a test double that loads nothing. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLocalInference, type LocalInference } from '../../../../core/inference/local/local-inference.ts';
import type { LocalModel } from '../../../../core/inference/catalog.ts';
import type { InstalledModels } from '../../../../core/inference/local/installed-models.ts';

const MINUTE_MS = 60_000;

const model = (id: string): LocalModel => ({
  kind: 'local',
  id,
  path: id,
  sizeBytes: 1,
  modifiedAtMs: 0,
  origin: 'folder',
  isBuiltIn: false,
});
const models: InstalledModels = { list: async () => [model('a'), model('b')], resolve: async (id) => model(id) };
const call = { prompt: [] };

let inference: LocalInference;
function start(keepLoadedMs: number | undefined): void {
  const runnerEntry = new URL('../../../support/stuck-runner.mjs', import.meta.url);
  inference = createLocalInference({
    models,
    runnerEntry,
    contextTokens: 10,
    gpu: 'off',
    sampling: {},
    keepLoadedMs,
    memoryFacts: async () => undefined,
  });
}
const residentId = () => inference.status().residents[0]?.id;
async function untilUnloaded(): Promise<void> {
  while (residentId() !== undefined) await nextTurn();
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(async () => {
  vi.useRealTimers();
  await inference.close();
});

test('a model is unloaded when its time after the last call is over, and not a moment before', async () => {
  start(15 * MINUTE_MS);
  await inference.countPromptTokens('a', call);
  expect(inference.status().residents[0]?.unloadsInMs).toBeGreaterThan(14 * MINUTE_MS);
  vi.advanceTimersByTime(14 * MINUTE_MS);
  await inference.countPromptTokens('a', call);
  vi.advanceTimersByTime(15 * MINUTE_MS - 1);
  await nextTurn();
  expect(residentId()).toBe('a');
  vi.advanceTimersByTime(1);
  await untilUnloaded();
  await inference.countPromptTokens('a', call);
  expect(residentId()).toBe('a');
});

test('a running call keeps it, however long it takes', async () => {
  start(5 * MINUTE_MS);
  const leave = new AbortController();
  const { stream } = await (await inference.languageModel('a')).doStream({ ...call, abortSignal: leave.signal });
  vi.advanceTimersByTime(60 * MINUTE_MS);
  await nextTurn();
  expect(residentId()).toBe('a');
  await stream.cancel();
});

test('immediately, or never', async () => {
  start(0);
  await inference.countPromptTokens('a', call);
  vi.advanceTimersByTime(0);
  await untilUnloaded();
  await inference.close();
  start(undefined);
  await inference.countPromptTokens('b', call);
  vi.advanceTimersByTime(24 * 60 * MINUTE_MS);
  await nextTurn();
  expect(residentId()).toBe('b');
});
