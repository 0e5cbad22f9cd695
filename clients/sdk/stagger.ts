/**
 * Attempts in the order of preference: each begins when the one before it has failed, or has not been done for a while,
 * and the earlier ones go on meanwhile (RFC 8305 §5 does so with addresses). The first that succeeds ends the others.
 */
import type { SetTimer } from '../../relay/wire/heartbeat.ts';

/** @throws what ends all of it */
export type Attempt<Success, Failure> = (
  signal: AbortSignal,
) => Promise<{ readonly success: Success } | { readonly failure: Failure }>;

/** RFC 8305 §5 recommends 250 ms. A handshake takes two round trips where a connection takes one. */
const STAGGER_MS = 300;

type Outcome<Success, Failure> = { readonly success: Success } | { readonly failures: readonly Failure[] };

interface Staggering {
  readonly setTimer: SetTimer;
  readonly signal: AbortSignal;
}

/** @returns the success, or all failures. @throws what an attempt throws, and the signal's reason */
export function stagger<Success, Failure>(
  attempts: readonly Attempt<Success, Failure>[],
  staggering: Staggering,
): Promise<Outcome<Success, Failure>> {
  return new Staggered(attempts, staggering).outcome;
}

class Staggered<Success, Failure> {
  readonly outcome: Promise<Outcome<Success, Failure>>;
  readonly #attempts: readonly Attempt<Success, Failure>[];
  readonly #staggering: Staggering;
  readonly #ending = new AbortController();
  readonly #failures: Failure[] = [];
  readonly #running = new Set<number>();
  #best: { readonly at: number; readonly success: Success } | undefined;
  #begun = 0;
  #cancelTimer = (): void => undefined;
  #resolve: (outcome: Outcome<Success, Failure>) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;

  constructor(attempts: readonly Attempt<Success, Failure>[], staggering: Staggering) {
    this.#attempts = attempts;
    this.#staggering = staggering;
    this.outcome = new Promise((resolve, reject) => {
      [this.#resolve, this.#reject] = [resolve, reject];
    });
    const { signal } = staggering;
    signal.addEventListener('abort', this.#onAbort, { once: true });
    if (signal.aborted) this.#onAbort();
    else if (attempts.length === 0) this.#end({ failures: [] });
    else this.#beginNext();
  }

  #beginNext(): void {
    this.#cancelTimer();
    const at = this.#begun;
    const attempt = this.#attempts[at];
    if (attempt === undefined) return;
    this.#begun += 1;
    if (this.#begun < this.#attempts.length) this.#later(STAGGER_MS, () => this.#beginNext());
    this.#run(at, attempt).catch((error: unknown) => this.#fail(error));
  }

  async #run(at: number, attempt: Attempt<Success, Failure>): Promise<void> {
    this.#running.add(at);
    const outcome = await attempt(this.#ending.signal);
    this.#running.delete(at);
    if ('success' in outcome) this.#succeeded(at, outcome.success);
    else this.#failed(at, outcome.failure);
  }

  #succeeded(at: number, success: Success): void {
    const isFirst = this.#best === undefined;
    if (this.#best === undefined || at < this.#best.at) this.#best = { at, success };
    if (!isFirst) return;
    this.#cancelTimer();
    // One that is preferred may succeed in this very turn.
    if ([...this.#running].some((other) => other < at)) this.#later(0, () => this.#win());
    else this.#win();
  }

  #win(): void {
    if (this.#best !== undefined) this.#end({ success: this.#best.success });
  }

  #failed(at: number, failure: Failure): void {
    this.#failures.push(failure);
    if (this.#best !== undefined) return;
    if (this.#failures.length === this.#attempts.length) this.#end({ failures: this.#failures });
    else if (at === this.#begun - 1) this.#beginNext();
  }

  #later(delayMs: number, run: () => void): void {
    this.#cancelTimer = this.#staggering.setTimer(delayMs, run);
  }

  readonly #onAbort = (): void => this.#fail(this.#staggering.signal.reason);

  #fail(error: unknown): void {
    this.#reject(error);
    this.#close();
  }

  #end(outcome: Outcome<Success, Failure>): void {
    this.#resolve(outcome);
    this.#close();
  }

  #close(): void {
    this.#cancelTimer();
    this.#staggering.signal.removeEventListener('abort', this.#onAbort);
    this.#ending.abort();
  }
}
