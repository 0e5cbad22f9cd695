/** How a model's context grows with what is asked of it. The runner is a test double that needs what a call asks for. */
import { afterEach, describe, expect, test } from 'vitest';
import type { LocalModel } from '../../../../core/inference/catalog.ts';
import { PROVIDER } from '../../../../core/inference/model-port.ts';
import {
  createLocalInference,
  type LocalInference,
  type LocalInferenceOptions,
} from '../../../../core/inference/local/local-inference.ts';
import { until } from '../../../support/wait.ts';

const GB = 1e9;
const model: LocalModel = {
  kind: 'local',
  id: 'm',
  path: 'm',
  sizeBytes: GB,
  modifiedAtMs: 0,
  origin: 'folder',
  isBuiltIn: false,
};
/** A thousand tokens of context take a tenth of a gigabyte. */
const memoryFacts: LocalInferenceOptions['memoryFacts'] = async () => ({
  weightBytes: GB,
  cacheBytesPerToken: 100_000,
  windowCacheBytesPerToken: 0,
  windowTokens: 0,
  isCacheQuantizable: false,
  stateBytesPerSequence: 0,
  outputBytesPerBatchToken: 0,
  layerBytesPerBatchToken: 0,
  vocabularySize: 0,
  trainedContextTokens: 65_536,
});

let inference: LocalInference;
let freeBytes: number;
afterEach(() => inference.close());

function start(options: Partial<LocalInferenceOptions> = {}): void {
  freeBytes = 100 * GB;
  inference = createLocalInference({
    models: { resolve: async () => model },
    runnerEntry: new URL('../../../support/obedient-runner.mjs', import.meta.url),
    gpu: 'off',
    sampling: {},
    memoryFacts,
    availableMemoryBytes: async () =>
      freeBytes - inference.status().residents.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
    ...options,
  });
}

const OWNER = { name: 'owner', isGuest: false };
const GUEST = { name: 'page', isGuest: true };

interface Ask {
  readonly owner?: typeof OWNER;
  /** What the call turns out to need; 0 is answered at once, by a model of any context. */
  readonly needs?: number;
  /** What its caller wants the context to be. */
  readonly wants?: number;
}

async function ask({ owner = OWNER, needs = 0, wants }: Ask = {}) {
  const abort = new AbortController();
  const options = wants === undefined ? {} : { providerOptions: { [PROVIDER]: { contextTokens: wants } } };
  const port = await inference.languageModel('m', owner);
  await port.doStream({ prompt: [], maxOutputTokens: needs, abortSignal: abort.signal, ...options });
  return { leave: () => abort.abort() };
}

const resident = () => inference.status().residents[0];

describe('a context', () => {
  test('is short at first, and says how long it can get', async () => {
    start();
    expect(await inference.contextLimit(model)).toBe(65_536);
    await ask();
    expect(resident()).toMatchObject({ contextTokens: 8192, limitTokens: 65_536 });
    expect(await inference.contextLimit(model)).toBe(65_536);
  });

  test('grows by doubling as far as a call needs it, and stays so', async () => {
    start();
    await ask();
    const before = resident()?.pid;
    (await ask({ needs: 20_000 })).leave();
    expect(resident()).toMatchObject({ contextTokens: 32_768, limitTokens: 65_536 });
    const grown = resident()?.pid;
    expect(grown).not.toBe(before);
    await ask();
    (await ask({ needs: 30_000 })).leave();
    expect(resident()?.pid).toBe(grown);
    await inference.unload('m');
    await ask();
    expect(resident()).toMatchObject({ contextTokens: 32_768 });
  });

  test('is loaded for a long text at once', async () => {
    start();
    const port = await inference.languageModel('m', OWNER);
    const text = 'word '.repeat(10_000);
    await port.doStream({ prompt: [{ role: 'user', content: [{ type: 'text', text }] }], maxOutputTokens: 0 });
    expect(resident()).toMatchObject({ contextTokens: 32_768 });
  });

  test('does not grow under a call that is being answered', async () => {
    start({ continuousBatching: true });
    const first = await ask({ needs: 100 });
    const before = resident()?.pid;
    const second = ask({ needs: 20_000 });
    await until(() => inference.status().inflight.get('m')?.queued === 1);
    expect(resident()?.pid).toBe(before);
    first.leave();
    (await second).leave();
    expect(resident()).toMatchObject({ contextTokens: 32_768 });
  });

  test('has no more than what the model was trained for', async () => {
    start();
    (await ask({ needs: 1_000_000 })).leave();
    expect(resident()).toMatchObject({ contextTokens: 65_536, limitTokens: 65_536 });
  });

  test('has no more than fits into memory, and all who ask are told so', async () => {
    start();
    freeBytes = 5 * GB;
    expect(await inference.contextLimit(model)).toBe(32_768);
    (await ask({ needs: 1_000_000 })).leave();
    expect(resident()).toMatchObject({ contextTokens: 32_768, limitTokens: 32_768 });
    expect(await inference.contextLimit(model)).toBe(32_768);
  });

  test('that memory no longer has is tried once, and then refused', async () => {
    start();
    await ask();
    freeBytes = 3.2 * GB;
    // The double is content with whatever it can have at the most.
    (await ask({ needs: 20_000 })).leave();
    expect(resident()).toMatchObject({ contextTokens: 16_384, limitTokens: 16_384 });
    const { pid } = resident()!;
    (await ask({ needs: 20_000 })).leave();
    expect(resident()?.pid).toBe(pid);
  });

  test('is what the owner has set, from the beginning and to the end', async () => {
    start({ contextTokens: 4096 });
    expect(await inference.contextLimit(model)).toBe(4096);
    (await ask({ needs: 20_000, wants: 20_000 })).leave();
    expect(resident()).toMatchObject({ contextTokens: 4096, limitTokens: 4096 });
  });
});

describe('a caller who says how much context it wants', () => {
  test('has the model loaded with it, and never with less', async () => {
    start();
    await ask({ wants: 16_384 });
    expect(resident()).toMatchObject({ contextTokens: 16_384 });
    const { pid } = resident()!;
    await ask({ wants: 2048 });
    expect(resident()?.pid).toBe(pid);
    await ask({ wants: 1_000_000 });
    expect(resident()).toMatchObject({ contextTokens: 65_536 });
  });

  test('has no model loaded anew as a guest', async () => {
    start();
    await ask({ wants: 32_768, owner: GUEST });
    expect(resident()).toMatchObject({ contextTokens: 8192 });
    const { pid } = resident()!;
    await ask({ wants: 32_768, owner: GUEST });
    expect(resident()?.pid).toBe(pid);
  });
});
