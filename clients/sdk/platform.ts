/** What the library needs of the platform. All of it can be passed in; by default it is what browsers and Node share. */
import type { Crypto } from '../../channel/crypto.ts';
import { nobleCrypto } from '../../channel/noble.ts';
import type { SetTimer } from '../../relay/wire/heartbeat.ts';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface Platform {
  readonly crypto: Crypto;
  readonly fetch: Fetch;
  /** Unix time in milliseconds. */
  readonly now: () => number;
  readonly setTimer: SetTimer;
  /** A hint for the gateway's log. */
  readonly clientVersion: string;
}

export function platformOf(given: Partial<Platform> = {}): Platform {
  return {
    crypto: given.crypto ?? nobleCrypto((length) => crypto.getRandomValues(new Uint8Array(length))),
    fetch: given.fetch ?? ((url, init) => fetch(url, init)),
    now: given.now ?? Date.now,
    setTimer: given.setTimer ?? setPlatformTimer,
    clientVersion: given.clientVersion ?? 'postern-sdk',
  };
}

const setPlatformTimer: SetTimer = (delayMs, run) => {
  const timer = setTimeout(run, delayMs);
  return () => clearTimeout(timer);
};

/** Waits, unless `signal` ends the waiting. @throws the signal's reason */
export async function pause(setTimer: SetTimer, delayMs: number, signal: AbortSignal): Promise<void> {
  let cancel = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    cancel = setTimer(delayMs, resolve);
  });
  try {
    await abortable(over, signal);
  } finally {
    cancel();
  }
}

/** The promise's outcome, or the signal's reason if that comes first. */
export function abortable<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    const forget = (): void => signal.removeEventListener('abort', onAbort);
    promise.then(resolve, reject).finally(forget);
  });
}
