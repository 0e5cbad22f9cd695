/**
 * Lets one holder through at a time, in the order of arrival. Whoever gives up waiting leaves the line.
 */
export interface Turnstile {
  /**
   * Resolves with a release function when it is the caller's turn. Releasing twice is harmless.
   * @throws the signal's reason, if it fires first
   */
  enter(signal?: AbortSignal): Promise<() => void>;
}

export function createTurnstile(): Turnstile {
  const line: (() => void)[] = [];
  let isHeld = false;

  function release(): void {
    const next = line.shift();
    if (next === undefined) isHeld = false;
    else next();
  }

  return {
    async enter(signal) {
      signal?.throwIfAborted();
      if (isHeld) await place(line, signal);
      isHeld = true;
      let isReleased = false;
      return () => {
        if (isReleased) return;
        isReleased = true;
        release();
      };
    },
  };
}

function place(line: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const turn = (): void => {
      signal?.removeEventListener('abort', leave);
      resolve();
    };
    const leave = (): void => {
      line.splice(line.indexOf(turn), 1);
      reject(signal?.reason);
    };
    line.push(turn);
    signal?.addEventListener('abort', leave, { once: true });
  });
}
