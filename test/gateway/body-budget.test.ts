/** Who may hold how much of request bodies, who waits, and that nobody waits for ever. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createBodyBudget, type BodyLease } from '../../gateway/body-budget.ts';
import { runs } from '../support/sampling.ts';

/** 10 a client, 30 in all, a timeout of 100 ms, on a clock that the test turns. */
function newBudget() {
  let nowMs = 0;
  const timers = new Map<() => void, number>();
  const budget = createBodyBudget({
    limits: { clientBytes: 10, allBytes: 30, timeoutMs: 100 },
    elapsed: () => nowMs,
    setTimer: (delayMs, run) => {
      timers.set(run, nowMs + delayMs);
      return () => void timers.delete(run);
    },
  });
  const advance = (ms: number): void => {
    nowMs += ms;
    for (const [run, atMs] of timers) {
      if (atMs > nowMs) continue;
      timers.delete(run);
      run();
    }
  };
  return { open: (clientKey: string) => budget.open(clientKey), counts: () => budget.counts(), advance };
}

/** Whether it may be held by now, or why not. */
async function outcome(taken: Promise<void>): Promise<unknown> {
  const state = taken.then(
    () => 'held',
    (error: { code: string }) => error.code,
  );
  return Promise.race([state, new Promise((resolve) => setImmediate(() => resolve('waits')))]);
}

describe('a client', () => {
  test('holds what it may; its oldest that waits goes over that, the others wait for room', async () => {
    const { open } = newBudget();
    const [first, second, third] = [open('a'), open('a'), open('a')];
    expect(await outcome(first.take(6))).toBe('held');
    expect(await outcome(second.take(4))).toBe('held');
    const more = third.take(5);
    expect(await outcome(more)).toBe('held');
    const waiting = second.take(1);
    expect(await outcome(waiting)).toBe('waits');
    third.release();
    expect(await outcome(waiting)).toBe('held');
  });

  test('that is full keeps nobody else out', async () => {
    const { open } = newBudget();
    for (const lease of [open('a'), open('a')]) await lease.take(10);
    expect(await outcome(open('a').take(1))).toBe('waits');
    expect(await outcome(open('b').take(10))).toBe('held');
  });

  test('is told 429 when its time is over, all clients together 503', async () => {
    const { open, advance } = newBudget();
    for (const name of ['a', 'a', 'b', 'c']) await open(name).take(10);
    const own = open('a').take(1);
    const others = open('d').take(5);
    const late = open('e').take(1);
    advance(100);
    expect(await outcome(own)).toBe('rate_limited');
    expect(await outcome(others)).toBe('overloaded');
    expect(await outcome(late)).toBe('overloaded');
  });
});

test('the timeout is for one body, however often it has to wait', async () => {
  const { open, advance } = newBudget();
  const [ahead, other, again] = [open('a'), open('a'), open('a')];
  await ahead.take(10);
  await other.take(1);
  const first = again.take(1);
  advance(60);
  expect(await outcome(first)).toBe('waits');
  other.release();
  expect(await outcome(first)).toBe('held');
  const blocker = open('a');
  void blocker.take(1);
  const second = again.take(1);
  expect(await outcome(second)).toBe('held');
});

test('the oldest body goes first, however late it began to wait', async () => {
  const { open } = newBudget();
  const blockers = [open('a'), open('a')];
  for (const lease of blockers) await lease.take(10);
  const served: number[] = [];
  const leases = Array.from({ length: 6 }, () => open('a'));
  const taken = [3, 0, 5, 1, 4, 2].map(async (at) => {
    await leases[at]?.take(5);
    served.push(at);
  });
  for (const lease of [...blockers, ...leases]) {
    lease.release();
    await new Promise(setImmediate);
  }
  await Promise.all(taken);
  expect(served).toEqual([0, 1, 2, 3, 4, 5]);
});

test('what was announced or given back holds nothing', async () => {
  const { open, counts } = newBudget();
  const lease = open('a');
  expect(counts().heldBytes).toBe(0);
  await lease.take(7);
  expect(counts().heldBytes).toBe(7);
  lease.release();
  lease.release();
  expect(await outcome(lease.take(100))).toBe('held');
  expect(counts()).toEqual({ heldBytes: 0, waiting: 0 });
});

test('a client that leaves while it waits stands in nobody’s way', async () => {
  const { open, counts } = newBudget();
  for (const lease of [open('a'), open('a')]) await lease.take(10);
  const gone = open('a');
  const waiting = gone.take(1);
  gone.release();
  expect(await outcome(waiting)).toBe('held');
  expect(counts()).toEqual({ heldBytes: 20, waiting: 0 });
});

test('bodies that are read bit by bit, all at once, all come through, and never more than the limit and one of them', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ clientKey: fc.constantFrom('a', 'b', 'c', 'd'), bytes: fc.integer({ min: 1, max: 10 }) }), {
        maxLength: 40,
      }),
      async (bodies) => {
        const { open, counts } = newBudget();
        const read = async (lease: BodyLease, bytes: number): Promise<void> => {
          for (let at = 0; at < bytes; at += 1) {
            await lease.take(1);
            await new Promise(setImmediate);
            expect(counts().heldBytes).toBeLessThanOrEqual(30 + 10);
          }
          lease.release();
        };
        await Promise.all(bodies.map(({ clientKey, bytes }) => read(open(clientKey), bytes)));
        expect(counts()).toEqual({ heldBytes: 0, waiting: 0 });
      },
    ),
    runs(400),
  );
});
