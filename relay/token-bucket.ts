/** So much a second, and a burst. */

export class TokenBucket {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #elapsedMs: () => number;
  #level: number;
  #filledAt: number;

  /** @param perSecond 0 is no limit */
  constructor({ perSecond, burst, elapsedMs }: { perSecond: number; burst: number; elapsedMs: () => number }) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#elapsedMs = elapsedMs;
    this.#level = burst;
    this.#filledAt = elapsedMs();
  }

  /** Takes it only if it is there. */
  take(amount: number): boolean {
    if (this.#perSecond === 0) return true;
    this.#fill();
    if (this.#level < amount) return false;
    this.#level -= amount;
    return true;
  }

  #fill(): void {
    const now = this.#elapsedMs();
    this.#level = Math.min(this.#burst, this.#level + ((now - this.#filledAt) / 1000) * this.#perSecond);
    this.#filledAt = now;
  }
}
