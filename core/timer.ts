/** Calls `run` after `delayMs`, unless the function that it returns is called before. Passed in, as the clock is. */
export type SetTimer = (delayMs: number, run: () => void) => () => void;

/** By the process's own clock; what waits keeps no process alive. */
export const setProcessTimer: SetTimer = (delayMs, run) => {
  const timer = setTimeout(run, delayMs).unref();
  return () => clearTimeout(timer);
};

/** @returns what `promise` gives, or undefined where that takes longer */
export function within<Value>(
  timeoutMs: number,
  promise: Promise<Value>,
  setTimer: SetTimer,
): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = setTimer(timeoutMs, () => resolve(undefined));
    void promise.then(resolve, reject).finally(cancel);
  });
}
