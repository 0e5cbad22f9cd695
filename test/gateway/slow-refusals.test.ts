/** A client in a loop is answered as before, only later each time; by an injected clock. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ServiceError } from '../../core/errors.ts';
import type { Inference } from '../../core/inference/inference.ts';
import type { LanguageModel } from '../../core/inference/model-port.ts';
import { FREE_REFUSALS, REFUSAL_DELAY_MS, withSlowRefusals } from '../../gateway/slow-refusals.ts';

const refusal = new ServiceError('prompt_too_long', 'The prompt is too long.');
const OWNER = { name: 'owner', isGuest: false };
const KEY = { name: 'key 1', isGuest: false };

function setUp(failure: Error = refusal) {
  let nowMs = 0;
  const timers = new Map<() => void, number>();
  const fail = () => Promise.reject(failure);
  const model: LanguageModel = {
    specificationVersion: 'v4',
    provider: 'test',
    modelId: 'm',
    supportedUrls: {},
    doStream: fail,
    doGenerate: fail,
  };
  const inference = withSlowRefusals({ languageModel: async () => model } as unknown as Inference, {
    elapsed: () => nowMs,
    setTimer: (delayMs, run) => {
      timers.set(run, nowMs + delayMs);
      return () => timers.delete(run);
    },
  });
  const pass = async (ms: number): Promise<void> => {
    nowMs += ms;
    for (const [run, atMs] of timers) if (atMs <= nowMs) run();
    await nextTurn();
  };
  return { inference, pass, timers };
}

interface Ask {
  readonly owner?: typeof OWNER;
  readonly how?: 'doStream' | 'doGenerate';
  readonly signal?: AbortSignal;
}

async function ask(
  { inference }: ReturnType<typeof setUp>,
  { owner = OWNER, how = 'doStream', signal = new AbortController().signal }: Ask = {},
) {
  const model = await inference.languageModel('m', owner);
  const state: { error?: unknown } = {};
  model[how]({ prompt: [], abortSignal: signal }).then(
    () => expect.unreachable(),
    (error: unknown) => (state.error = error),
  );
  await nextTurn();
  return state;
}

test('a caller whose prompts are too long again and again waits for each further answer', async () => {
  const service = setUp();
  for (let count = 0; count < FREE_REFUSALS; count += 1) {
    expect(await ask(service, { how: count % 2 === 0 ? 'doStream' : 'doGenerate' })).toEqual({ error: refusal });
  }
  for (const how of ['doStream', 'doGenerate'] as const) {
    const late = await ask(service, { how });
    await service.pass(REFUSAL_DELAY_MS - 1);
    expect(late).toEqual({});
    await service.pass(1);
    expect(late).toEqual({ error: refusal });
  }
  expect(await ask(service, { owner: KEY })).toEqual({ error: refusal });
  await service.pass(60_000);
  expect(await ask(service)).toEqual({ error: refusal });
});

test('one that leaves is waited for no longer', async () => {
  const service = setUp();
  for (let count = 0; count < FREE_REFUSALS; count += 1) await ask(service);
  const leave = new AbortController();
  const late = await ask(service, { signal: leave.signal });
  expect(late).toEqual({});
  leave.abort();
  await nextTurn();
  expect(late).toEqual({ error: refusal });
  expect(service.timers.size).toBe(0);
});

test('other failures come at once', async () => {
  const error = new ServiceError('overloaded', 'Later.');
  const service = setUp(error);
  for (let count = 0; count < 3 * FREE_REFUSALS; count += 1) expect(await ask(service)).toEqual({ error });
});
