/**
 * Keeps a connection up: dials, waits, dials again, for as long as it is wanted. Nothing that an attempt does ends it,
 * neither an exception nor silence: an attempt that is neither connected nor over after 90 s is given up.
 */
import type { SetTimer } from '../relay/wire/heartbeat.ts';
import { backoffMs } from './backoff.ts';

const WATCHDOG_MS = 90_000;
/** A connection that held so long forgives the failures before it. */
const HEALTHY_MS = 60_000;
const MAX_FAILURES = 20;

/** How an attempt ended. */
export interface DialOutcome {
  readonly error: unknown;
  /** The relay asked for so long; instead of the backoff. */
  readonly wait?: { readonly minMs: number; readonly spreadMs: number };
  /** Dialling again soon would do harm: as if it had failed often. */
  readonly isSlow?: boolean;
}

export type DialPhase = 'connecting' | 'connected' | 'waiting' | 'closed';

export interface DialLoopOptions {
  /** Resolves when it is over; `connected` is to be called when it is up. */
  attempt(signal: AbortSignal, connected: () => void): Promise<DialOutcome>;
  /** Told of every change. @param waitMs how long it waits */
  onPhase(phase: DialPhase, about: { readonly waitMs?: number; readonly error?: unknown }): void;
  readonly setTimer: SetTimer;
  readonly random: () => number;
}

export interface DialLoop {
  /** Dials now, if it is waiting. */
  retryNow(): void;
  close(): void;
}

export function startDialLoop(options: DialLoopOptions): DialLoop {
  return new Dialler(options);
}

class Dialler implements DialLoop {
  readonly #options: DialLoopOptions;
  #phase: DialPhase = 'connecting';
  #attempt = new AbortController();
  #failures = 0;
  /** The watchdog of an attempt, what makes a connection healthy, or the wait: one at a time. */
  #cancelTimer: () => void = () => undefined;

  constructor(options: DialLoopOptions) {
    this.#options = options;
    this.#dial();
  }

  retryNow(): void {
    if (this.#phase !== 'waiting') return;
    this.#cancelTimer();
    this.#dial();
  }

  close(): void {
    this.#cancelTimer();
    this.#enter('closed', {});
    this.#attempt.abort();
  }

  #dial(): void {
    if (this.#phase === 'closed') return;
    const attempt = new AbortController();
    this.#attempt = attempt;
    this.#enter('connecting', {});
    this.#cancelTimer = this.#options.setTimer(WATCHDOG_MS, () => {
      this.#over(attempt, { error: new Error('the attempt took too long') });
      attempt.abort();
    });
    this.#run(attempt).then(
      (outcome) => this.#over(attempt, outcome),
      (error: unknown) => this.#over(attempt, { error }),
    );
  }

  async #run(attempt: AbortController): Promise<DialOutcome> {
    return this.#options.attempt(attempt.signal, () => this.#connected(attempt));
  }

  #connected(attempt: AbortController): void {
    if (this.#attempt !== attempt || this.#phase !== 'connecting') return;
    this.#cancelTimer();
    this.#cancelTimer = this.#options.setTimer(HEALTHY_MS, () => {
      this.#failures = 0;
    });
    this.#enter('connected', {});
  }

  #over(attempt: AbortController, { error, wait, isSlow = false }: DialOutcome): void {
    if (this.#attempt !== attempt || this.#phase === 'waiting' || this.#phase === 'closed') return;
    this.#cancelTimer();
    this.#failures = isSlow ? MAX_FAILURES : Math.min(this.#failures + 1, MAX_FAILURES);
    const waitMs = Math.max(0, this.#waitMs(wait));
    this.#enter('waiting', { waitMs, error });
    this.#cancelTimer = this.#options.setTimer(waitMs, () => this.#dial());
  }

  #waitMs(wait: DialOutcome['wait']): number {
    try {
      const { random } = this.#options;
      return wait === undefined ? backoffMs(this.#failures, random) : wait.minMs + random() * wait.spreadMs;
    } catch {
      return backoffMs(this.#failures, Math.random);
    }
  }

  /** Whoever is told may fail: that is no reason to stop dialling. */
  #enter(phase: DialPhase, about: { readonly waitMs?: number; readonly error?: unknown }): void {
    this.#phase = phase;
    try {
      this.#options.onPhase(phase, about);
    } catch {
      // Nobody is left to be told.
    }
  }
}
