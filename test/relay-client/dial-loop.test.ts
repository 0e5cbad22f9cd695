/** A day of the dial loop, by a clock that is handed to it: whatever its attempts do, it goes on. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backoffMs } from '../../relay-client/backoff.ts';
import { startDialLoop, type DialOutcome, type DialPhase } from '../../relay-client/dial-loop.ts';
import { runs, seed } from '../support/sampling.ts';

/** Timers that fire when they are told to. */
class Time {
  nowMs = 0;
  #timers: { at: number; run: () => void }[] = [];

  readonly setTimer = (ms: number, run: () => void): (() => void) => {
    // Whole milliseconds, as Node's: sums of fractions would pass a bound by a part of a millionth.
    const timer = { at: this.nowMs + Math.trunc(ms), run };
    this.#timers.push(timer);
    return () => (this.#timers = this.#timers.filter((one) => one !== timer));
  };

  get pending(): number {
    return this.#timers.length;
  }

  async advance(ms: number): Promise<void> {
    const end = this.nowMs + ms;
    for (;;) {
      await turns();
      const next = this.#timers.toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined || next.at > end) break;
      this.nowMs = next.at;
      this.#timers = this.#timers.filter((one) => one !== next);
      next.run();
    }
    this.nowMs = end;
  }
}

/** Lets every promise that is settled go on. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

function randomOf(start: number): () => number {
  let state = start;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

type Behaviour = 'throws' | 'rejects' | 'fails' | 'hangs' | 'connects' | 'flaps' | 'goes away' | 'throws nothing';
const BEHAVIOURS: readonly Behaviour[] = [
  'throws',
  'rejects',
  'fails',
  'hangs',
  'connects',
  'flaps',
  'goes away',
  'throws nothing',
];

function behave(what: Behaviour, time: Time, connected: () => void, upMs: number): Promise<DialOutcome> {
  const later = (outcome: DialOutcome, ms: number): Promise<DialOutcome> =>
    new Promise((resolve) => void time.setTimer(ms, () => resolve(outcome)));
  switch (what) {
    case 'throws':
      throw new Error('planted');
    case 'throws nothing':
      throw undefined;
    case 'rejects':
      return Promise.reject(new Error('planted'));
    case 'fails':
      return later({ error: new Error('refused') }, 100);
    case 'hangs':
      return new Promise(() => undefined);
    case 'connects':
      connected();
      return later({ error: new Error('lost') }, upMs);
    case 'flaps':
      connected();
      connected();
      return Promise.resolve({ error: new Error('lost') });
    default:
      connected();
      return later({ error: new Error('draining'), wait: { minMs: 1000, spreadMs: 10_000 } }, upMs);
  }
}

test('in a day of failures of every kind it is never stuck: neither connected nor waiting for 90 s at most', async () => {
  const time = new Time();
  const random = randomOf(seed);
  let attempts = 0;
  const phases: { phase: DialPhase; at: number }[] = [];
  const loop = startDialLoop({
    attempt: (_signal, connected) => {
      attempts += 1;
      return behave(BEHAVIOURS[attempts % BEHAVIOURS.length]!, time, connected, random() * 600_000);
    },
    onPhase: (phase) => {
      phases.push({ phase, at: time.nowMs });
      if (attempts % 3 === 0) throw new Error('planted in the listener');
    },
    setTimer: time.setTimer,
    random: () => {
      if (attempts % 7 === 0) throw new Error('planted in the dice');
      return random();
    },
  });
  await time.advance(86_400_000);
  expect(attempts).toBeGreaterThan(200);
  for (const [index, { phase, at }] of phases.entries()) {
    const until = phases[index + 1]?.at ?? time.nowMs;
    if (phase === 'connecting') expect(until - at).toBeLessThanOrEqual(90_000);
    if (phase === 'waiting') expect(until - at).toBeLessThanOrEqual(60_000);
  }
  console.log(`  a day: ${attempts} attempts, never stuck`);
  loop.close();
  const before = attempts;
  await time.advance(3_600_000);
  expect(attempts).toBe(before);
});

test('an attempt that hangs is given up, is told so, and what it says later changes nothing', async () => {
  const time = new Time();
  const calls: { signal: AbortSignal; connected: () => void; resolve: (outcome: DialOutcome) => void }[] = [];
  const phases: DialPhase[] = [];
  const loop = startDialLoop({
    attempt: (signal, connected) => new Promise((resolve) => calls.push({ signal, connected, resolve })),
    onPhase: (phase) => phases.push(phase),
    setTimer: time.setTimer,
    random: () => 0.5,
  });
  await time.advance(90_000);
  expect(calls[0]!.signal.aborted).toBe(true);
  calls[0]!.connected();
  calls[0]!.resolve({ error: new Error('late') });
  await time.advance(10_000);
  expect(phases).toEqual(['connecting', 'waiting', 'connecting']);
  calls[1]!.connected();
  await time.advance(1_000_000);
  expect(phases.at(-1)).toBe('connected');
  expect(calls.length).toBe(2);
  loop.close();
  expect(calls[1]!.signal.aborted).toBe(true);
});

test('retryNow dials at once while it waits, and only then', async () => {
  const time = new Time();
  let attempts = 0;
  const loop = startDialLoop({
    attempt: () => {
      attempts += 1;
      return attempts === 1 ? Promise.resolve({ error: new Error('no') }) : new Promise<DialOutcome>(() => undefined);
    },
    onPhase: () => undefined,
    setTimer: time.setTimer,
    random: () => 0.9,
  });
  await turns();
  loop.retryNow();
  loop.retryNow();
  expect(attempts).toBe(2);
  loop.close();
});

test('the wait is anything up to a bound that doubles to a minute', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (failures, dice) => {
        const wait = backoffMs(failures, () => dice);
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(wait).toBeLessThanOrEqual(Math.min(60_000, 500 * 2 ** (failures - 1)));
      },
    ),
    runs(2000),
  );
  expect(backoffMs(1, () => 0.999)).toBeCloseTo(499.5);
  expect(backoffMs(50, () => 0.999)).toBeCloseTo(59_940);
});
