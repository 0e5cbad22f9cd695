/** Which call runs when, and which model stays. The runner is a test double that holds each call until it is left. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import {
  createLocalInference,
  MAX_QUEUED,
  type LocalInference,
  type LocalInferenceOptions,
} from '../../../../core/inference/local/local-inference.ts';
import type { LocalModel } from '../../../../core/inference/catalog.ts';
import { until } from '../../../support/wait.ts';

const GB = 1e9;
const model = (id: string): LocalModel => ({
  kind: 'local',
  id,
  path: id,
  sizeBytes: Number(/\d+$/.exec(id)?.[0] ?? 1) * GB,
  modifiedAtMs: 0,
  origin: 'folder',
  isBuiltIn: false,
});

/** A model's name ends in the gigabytes of its weights; a thousand tokens of context take a tenth of one more. */
const memoryFacts: LocalInferenceOptions['memoryFacts'] = async ({ sizeBytes }) => ({
  weightBytes: sizeBytes,
  cacheBytesPerToken: 100_000,
  windowCacheBytesPerToken: 0,
  windowTokens: 0,
  isCacheQuantizable: false,
  stateBytesPerSequence: 0,
  outputBytesPerBatchToken: 0,
  layerBytesPerBatchToken: 0,
  vocabularySize: 0,
});

let inference: LocalInference;
let freeBytes = 100 * GB;
afterEach(() => inference.close());

function start(options: Partial<LocalInferenceOptions> = {}): void {
  freeBytes = 100 * GB;
  inference = createLocalInference({
    models: { resolve: async (id) => model(id) },
    runnerEntry: new URL('../../../support/obedient-runner.mjs', import.meta.url),
    contextTokens: 8192,
    gpu: 'off',
    sampling: {},
    memoryFacts,
    // What the machine has, less what the loaded models hold: a process that was ended gives all of it back.
    availableMemoryBytes: async () =>
      freeBytes - inference.status().residents.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
    ...options,
  });
}

const started: string[] = [];

/** A call that runs until it is left. */
function call(id: string, owner = '', name = id) {
  const abort = new AbortController();
  const began = inference.languageModel(id, { name: owner, isGuest: owner.startsWith('guest') }).then(async (one) => {
    const { stream } = await one.doStream({ prompt: [], abortSignal: abort.signal });
    started.push(name);
    return stream;
  });
  began.catch(() => undefined);
  return {
    began,
    leave: async (): Promise<void> => {
      abort.abort();
      await began.catch(() => undefined);
    },
  };
}

/** A call that was answered. */
async function answered(id: string, owner = ''): Promise<void> {
  const one = call(id, owner);
  await one.began;
  await one.leave();
}

const residents = () => inference.status().residents.map(({ id }) => id);
const count = (id: string) => inference.status().inflight.get(id) ?? { running: 0, queued: 0 };
const untilWaiting = (id: string, queued: number) => until(() => count(id).queued === queued);
const settled = async () => {
  for (let turns = 0; turns < 20; turns += 1) await nextTurn();
};

describe('strict', () => {
  test('another model waits for those before it, and keeps out those after it', async () => {
    start();
    started.length = 0;
    const first = call('a', '', 'first');
    await first.began;
    const second = call('a', '', 'second');
    await untilWaiting('a', 1);
    const other = call('b');
    await untilWaiting('b', 1);
    const third = call('a', '', 'third');
    await untilWaiting('a', 2);
    await first.leave();
    await second.began;
    await settled();
    expect(started).toEqual(['first', 'second']);
    expect(residents()).toEqual(['a']);
    await second.leave();
    await other.began;
    expect(residents()).toEqual(['b']);
    await settled();
    expect(started).toEqual(['first', 'second', 'b']);
    await other.leave();
    await third.began;
    expect(residents()).toEqual(['a']);
    await third.leave();
  });

  test('a load that nobody waits for any more does not happen, and nobody waits for it', async () => {
    start();
    const first = call('a');
    await first.began;
    const other = call('b');
    await untilWaiting('b', 1);
    const pid = inference.status().residents[0]?.pid;
    const second = call('a');
    await untilWaiting('a', 1);
    await other.leave();
    await first.leave();
    await second.began;
    expect(inference.status().residents).toMatchObject([{ id: 'a', pid }]);
    await second.leave();
  });

  test('a model that will not fit drives nobody out', async () => {
    start();
    await inference.load('a');
    await expect(inference.load('b200')).rejects.toMatchObject({
      code: 'insufficient_resources',
      message: expect.stringContaining('200.0 GB'),
    });
    expect(residents()).toEqual(['a']);
  });

  test('everybody who waits for a model that will not fit is told', async () => {
    start();
    const calls = [call('b200'), call('b200'), call('b200')];
    for (const { began } of calls) await expect(began).rejects.toMatchObject({ code: 'insufficient_resources' });
    expect(inference.status().inflight.size).toBe(0);
  });

  test('where memory is short the context is, too', async () => {
    start();
    freeBytes = 1.9 * GB;
    await inference.load('a1');
    expect(inference.status().residents[0]).toMatchObject({ contextTokens: 4096, sequences: 1 });
  });
});

describe('flexible', () => {
  test('models stay side by side while they fit; then the one not used for longest goes', async () => {
    start({ eviction: 'flexible' });
    freeBytes = 40 * GB;
    for (const id of ['a10', 'b10', 'a10', 'c10']) await inference.load(id);
    expect(residents()).toEqual(['c10', 'a10', 'b10']);
    await inference.load('d10');
    expect(residents()).toEqual(['d10', 'c10', 'a10']);
  });

  test('a running call is never cut for another model: the load waits, and keeps out those after it', async () => {
    start({ eviction: 'flexible' });
    freeBytes = 20 * GB;
    const running = call('a10');
    await running.began;
    const large = call('b15');
    await untilWaiting('b15', 1);
    const late = call('a10');
    await untilWaiting('a10', 1);
    await settled();
    expect(residents()).toEqual(['a10']);
    await running.leave();
    await large.began;
    expect(residents()).toEqual(['b15']);
    await large.leave();
    await late.began;
    await late.leave();
  });

  test('calls of different models do not wait for each other', async () => {
    start({ eviction: 'flexible' });
    const calls = ['a', 'b', 'c'].map((id) => call(id));
    for (const { began } of calls) await began;
    for (const { leave } of calls) await leave();
  });
});

describe('one model', () => {
  test('answers one call at a time, or with batching as many as it has sequences', async () => {
    start({ concurrentSessions: 3 });
    const first = call('a');
    await first.began;
    const second = call('a');
    await untilWaiting('a', 1);
    await settled();
    expect(count('a')).toEqual({ running: 1, queued: 1 });
    await first.leave();
    await second.leave();
    await inference.close();

    start({ concurrentSessions: 3, continuousBatching: true });
    const calls = [call('a'), call('a'), call('a')];
    for (const { began } of calls) await began;
    const fourth = call('a');
    await untilWaiting('a', 1);
    expect(count('a')).toEqual({ running: 3, queued: 1 });
    await calls[1]!.leave();
    await fourth.began;
    for (const { leave } of [...calls, fourth]) await leave();
  });

  test.each([
    [0, 1],
    [99, 32],
    [undefined, 4],
  ])('concurrent sessions %s are %i', async (concurrentSessions, sequences) => {
    start({ concurrentSessions });
    await inference.load('a');
    expect(inference.status().residents[0]?.sequences).toBe(sequences);
  });

  test('callers take turns', async () => {
    start();
    started.length = 0;
    const held = call('a', 'busy', 'held');
    await held.began;
    const names = ['busy 1', 'busy 2', 'busy 3', 'other 1', 'other 2'];
    const calls = new Map(names.map((name) => [name, call('a', name.split(' ')[0], name)]));
    await untilWaiting('a', 5);
    await held.leave();
    for (const name of ['busy 1', 'other 1', 'busy 2', 'other 2', 'busy 3']) {
      await until(() => started.at(-1) === name);
      await calls.get(name)!.leave();
    }
  });

  test('more than may wait are refused; another model has a line of its own', async () => {
    start();
    const held = call('a');
    await held.began;
    const waiting = Array.from({ length: MAX_QUEUED }, () => call('a'));
    await untilWaiting('a', MAX_QUEUED);
    await expect(call('a').began).rejects.toMatchObject({ code: 'overloaded' });
    const other = call('b');
    await untilWaiting('b', 1);
    for (const { leave } of [other, ...waiting, held]) await leave();
  });

  test('of a full queue whoever has most waiting gives up a place, and nobody who has fewer', async () => {
    start();
    const held = call('a', 'many');
    await held.began;
    const waiting = Array.from({ length: MAX_QUEUED }, () => call('a', 'many'));
    await untilWaiting('a', MAX_QUEUED);
    const few = call('a', 'few');
    await expect(waiting.at(-1)!.began).rejects.toMatchObject({ code: 'overloaded' });
    await expect(call('a', 'many').began).rejects.toMatchObject({ code: 'overloaded' });
    await untilWaiting('a', MAX_QUEUED);
    for (const { leave } of [few, ...waiting, held]) await leave();
  });

  test("a guest has no model unloaded: it is refused while another one is loaded, and others' calls are not", async () => {
    start({ eviction: 'strict' });
    await answered('a');
    await expect(call('b', 'guest 1').began).rejects.toMatchObject({ code: 'overloaded', message: /web page/ });
    expect(residents()).toEqual(['a']);
    // Whoever may have it unloaded gets their model, though a guest asked first.
    const refused = call('b', 'guest 2');
    const owner = call('b', 'owner');
    await owner.began;
    expect(residents()).toEqual(['b']);
    await owner.leave();
    await refused.leave();
    await inference.unload('b');
    await answered('a', 'guest 1');
  });

  test('a guest has a model loaded beside others where there is room', async () => {
    start({ eviction: 'flexible' });
    await answered('a');
    await answered('b', 'guest');
    expect(residents().toSorted()).toEqual(['a', 'b']);
    freeBytes = 3 * GB;
    await expect(call('c2', 'guest').began).rejects.toMatchObject({ code: 'overloaded' });
    expect(residents().toSorted()).toEqual(['a', 'b']);
  });

  test('guests wait until nobody else does, and give up their places', async () => {
    start();
    started.length = 0;
    const held = call('a', 'owner', 'held');
    await held.began;
    const guests = Array.from({ length: MAX_QUEUED }, (_, index) => call('a', `guest ${index}`));
    await untilWaiting('a', MAX_QUEUED);
    const late = call('a', 'owner', 'late');
    await expect(guests[0]!.began).rejects.toMatchObject({ code: 'overloaded' });
    await held.leave();
    await late.began;
    expect(started).toEqual(['held', 'late']);
    for (const { leave } of [...guests, late]) await leave();
  });

  test('a call that only asks something does not wait for one that generates', async () => {
    start();
    const held = call('a');
    await held.began;
    expect(await inference.countPromptTokens('a', { prompt: [] })).toBe(1);
    await held.leave();
    await inference.unload('a');
    expect(residents()).toEqual([]);
  });
});

describe('unload', () => {
  test('waits for the calls that use the model, and lets nobody in until it is gone', async () => {
    start();
    const held = call('a');
    await held.began;
    const pid = inference.status().residents[0]?.pid;
    let isGone = false;
    const unloaded = inference.unload('a').then(() => (isGone = true));
    const late = call('a');
    await untilWaiting('a', 1);
    await settled();
    expect([isGone, residents()]).toEqual([false, ['a']]);
    await held.leave();
    await unloaded;
    await late.began;
    expect(inference.status().residents[0]?.pid).not.toBe(pid);
    await late.leave();
  });

  test('twice at once, of a model that is being loaded, of one that is not there', async () => {
    start();
    const loading = inference.load('a');
    await Promise.all([loading, inference.unload('a'), inference.unload('a')]);
    await inference.unload('b');
    expect(residents()).toEqual([]);
  });
});

test('the end of the service ends those who run, those who wait and those who load', async () => {
  start();
  const held = call('a');
  await held.began;
  const waiting = [call('a'), call('b')];
  await untilWaiting('b', 1);
  await inference.close();
  for (const { began } of waiting) await expect(began).rejects.toMatchObject({ code: 'shutting_down' });
  expect(residents()).toEqual([]);
  await expect(inference.load('a')).rejects.toMatchObject({ code: 'shutting_down' });
});
