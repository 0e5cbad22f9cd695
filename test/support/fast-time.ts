/**
 * A clock that goes by turns of the event loop and not by the world's: fast, and a great deal faster when nothing moves.
 * What takes minutes is seen in a second, and a busy machine makes nobody impatient.
 */
import type { SetTimer } from '../../core/timer.ts';
import { createFakeTime } from '../core/fake-time.ts';

export interface FastTime {
  /** Unix time in milliseconds. */
  readonly now: () => number;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  readonly setTimer: SetTimer;
  stop(): void;
}

const BUSY_MS = 20;
const QUIET_MS = 400;

/** @param moved a number that grows with all that happens */
export function createFastTime(moved: () => number): FastTime {
  const time = createFakeTime(Date.now());
  let before = moved();
  const turn = setInterval(() => {
    const now = moved();
    time.advance(now === before ? QUIET_MS : BUSY_MS);
    before = now;
  }, 1);
  // As the real one has it: from somewhere, and with fractions.
  const elapsed = (): number => time.now() - 1_000_000.3;
  return { now: time.now, elapsed, setTimer: time.setTimer, stop: () => clearInterval(turn) };
}
