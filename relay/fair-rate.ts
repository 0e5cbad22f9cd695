/**
 * The rate of one gateway, in equal parts for those who use it: each tag fills up by itself, and what one does not need
 * is the others'. So who sends or has sent to him without end slows down himself, and who comes beside him has his part
 * at once.
 */

/** The part of one. */
export interface RateShare {
  /** Takes it whether it is there or not: it was on its way already. */
  spend(bytes: number): void;
  /** Until it is no longer overdrawn, but no longer than until it is to be asked again; 0 if it isn't. */
  waitMs(): number;
  /** Overdrawn by more than a whole burst: nothing new is to begin. */
  isExhausted(): boolean;
}

export interface RateOptions {
  /** Of all together; 0 is no limit. */
  readonly perSecond: number;
  /** Of each, when it has been quiet. */
  readonly burst: number;
  readonly elapsedMs: () => number;
}

/** How fast a part fills changes with those who come and go. */
const ASK_AGAIN_MS = 1000;

export class FairRate {
  readonly #options: RateOptions;
  /** Of those who are not full. */
  readonly #levels = new Map<string, number>();
  #filledAt: number;

  constructor(options: RateOptions) {
    this.#options = options;
    this.#filledAt = options.elapsedMs();
  }

  /** @param name whose part: the same for all connections of one */
  of(name: string): RateShare {
    const { perSecond, burst } = this.#options;
    if (perSecond === 0) return UNLIMITED;
    return {
      spend: (bytes) => void this.#levels.set(name, this.#levelOf(name) - bytes),
      waitMs: () => {
        const overdrawn = -this.#levelOf(name);
        if (overdrawn <= 0) return 0;
        return Math.min(ASK_AGAIN_MS, Math.ceil((overdrawn / perSecond) * this.#levels.size * 1000));
      },
      isExhausted: () => this.#levelOf(name) < -burst,
    };
  }

  #levelOf(name: string): number {
    this.#fill();
    return this.#levels.get(name) ?? this.#options.burst;
  }

  #fill(): void {
    const { perSecond, burst, elapsedMs } = this.#options;
    const now = elapsedMs();
    let left = ((now - this.#filledAt) / 1000) * perSecond;
    this.#filledAt = now;
    // Who needs least comes first, so that what it leaves is shared by all who need more.
    const inNeed = [...this.#levels].toSorted(([, one], [, other]) => other - one);
    for (const [at, [name, level]] of inNeed.entries()) {
      const part = Math.min(left / (inNeed.length - at), burst - level);
      left -= part;
      if (level + part < burst) this.#levels.set(name, level + part);
      else this.#levels.delete(name);
    }
  }
}

const UNLIMITED: RateShare = { spend: () => undefined, waitMs: () => 0, isExhausted: () => false };
