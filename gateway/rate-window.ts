/** Counts by name in windows of time. It has two ends, to look and to count, since not everything that is looked at counts. */

const MINUTE_MS = 60_000;

/** Names that are counted at a time; beyond that the one whose window began first is forgotten. */
export const MAX_NAMES = 10_000;

export interface RateWindow {
  /** @returns how long until this name may go on, where it has used up what it had; else undefined. Seconds, rounded up */
  retryAfterS(name: string): number | undefined;
  count(name: string): void;
}

interface Window {
  readonly endsAtMs: number;
  count: number;
}

interface WindowOptions {
  /** How many in a window. */
  readonly limit: number;
  /** A minute, where nothing is said. */
  readonly windowMs?: number;
  /** Milliseconds that never go back. */
  readonly now: () => number;
}

export function createRateWindow({ limit, windowMs = MINUTE_MS, now }: WindowOptions): RateWindow {
  // In the order in which they began, which is the order in which they end.
  const windows = new Map<string, Window>();
  const open = (name: string): Window | undefined => {
    const window = windows.get(name);
    if (window === undefined || now() < window.endsAtMs) return window;
    windows.delete(name);
    return undefined;
  };
  return {
    retryAfterS(name) {
      const window = open(name);
      if (window === undefined || window.count < limit) return undefined;
      return Math.ceil((window.endsAtMs - now()) / 1000);
    },
    count(name) {
      const window = open(name) ?? { endsAtMs: now() + windowMs, count: 0 };
      window.count += 1;
      windows.set(name, window);
      const [first] = windows.keys();
      if (windows.size > MAX_NAMES && first !== undefined) windows.delete(first);
    },
  };
}
