/** A clock that stands still until it is told to go on, and the timers that hang on it. */
import type { SetTimer } from '../../core/timer.ts';

export interface FakeTime {
  readonly now: () => number;
  readonly setTimer: SetTimer;
  /** How many timers wait. */
  readonly pending: () => number;
  /** Goes on, and runs what is due on the way, in order. */
  readonly advance: (byMs: number) => void;
  /** Goes on while no timer runs, as on a machine that sleeps. */
  readonly sleep: (byMs: number) => void;
}

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

export function createFakeTime(startMs = 1_700_000_000_000): FakeTime {
  let nowMs = startMs;
  const timers = new Set<Timer>();
  const next = (untilMs: number): Timer | undefined =>
    [...timers].filter(({ atMs }) => atMs <= untilMs).toSorted((a, b) => a.atMs - b.atMs)[0];
  return {
    now: () => nowMs,
    setTimer(delayMs, run) {
      const timer = { atMs: nowMs + delayMs, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    pending: () => timers.size,
    advance(byMs) {
      const untilMs = nowMs + byMs;
      for (let timer = next(untilMs); timer !== undefined; timer = next(untilMs)) {
        timers.delete(timer);
        nowMs = Math.max(nowMs, timer.atMs);
        timer.run();
      }
      nowMs = untilMs;
    },
    sleep(byMs) {
      nowMs += byMs;
    },
  };
}
