/** The process's own timers, as those who are handed them see them. None keeps the process alive. */
import type { SetTimer } from '../core/timer.ts';

export const setTimer: SetTimer = (delayMs, run) => {
  const timer = setTimeout(run, delayMs).unref();
  return () => clearTimeout(timer);
};
