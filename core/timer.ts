/** Calls `run` after `delayMs`, unless the function that it returns is called before. Passed in, as the clock is. */
export type SetTimer = (delayMs: number, run: () => void) => () => void;

/** By the process's own clock; what waits keeps no process alive. */
export const setProcessTimer: SetTimer = (delayMs, run) => {
  const timer = setTimeout(run, delayMs).unref();
  return () => clearTimeout(timer);
};
