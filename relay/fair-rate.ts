/**
 * The rate of one gateway, in equal parts for those who use it: each tag fills up by itself, and what one does not need
 * is the others'. So who sends or has sent to him without end slows down himself, and who comes beside him has his part
 * at once.
 */
import { PriorityQueue } from './priority-queue.ts';

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

/** One who is not full. */
interface User {
  readonly name: string;
  /** What everybody is to have been given for this one to be full. */
  fullAt: number;
  /** By which it is queued: `fullAt`, or what that was before it spent more. */
  queuedAt: number;
}

export class FairRate {
  readonly #options: RateOptions;
  /** Bytes that each who was never full was given so far. All who aren't full rise together, so one number is enough. */
  #given = 0;
  #givenAt: number;
  readonly #users = new Map<string, User>();
  readonly #queue = new PriorityQueue<User>(({ queuedAt }) => queuedAt);

  constructor(options: RateOptions) {
    this.#options = options;
    this.#givenAt = options.elapsedMs();
  }

  /** @param name whose part: the same for all connections of one */
  of(name: string): RateShare {
    const { perSecond, burst } = this.#options;
    if (perSecond === 0) return UNLIMITED;
    return {
      spend: (bytes) => this.#spend(name, bytes),
      waitMs: () => {
        const overdrawn = -this.#levelOf(name);
        if (overdrawn <= 0) return 0;
        return Math.min(ASK_AGAIN_MS, Math.ceil((overdrawn / perSecond) * this.#users.size * 1000));
      },
      isExhausted: () => this.#levelOf(name) < -burst,
    };
  }

  #spend(name: string, bytes: number): void {
    this.#give();
    const known = this.#users.get(name);
    if (known !== undefined) {
      known.fullAt += bytes;
      return;
    }
    const fullAt = this.#given + bytes;
    const user = { name, fullAt, queuedAt: fullAt };
    this.#users.set(name, user);
    this.#queue.push(user);
  }

  #levelOf(name: string): number {
    this.#give();
    const { burst } = this.#options;
    const user = this.#users.get(name);
    return user === undefined ? burst : burst - (user.fullAt - this.#given);
  }

  /** Gives out what came in since the last time. Who is full soonest leaves what it does not need to all others. */
  #give(): void {
    const { perSecond, elapsedMs } = this.#options;
    const now = elapsedMs();
    let left = ((now - this.#givenAt) / 1000) * perSecond;
    this.#givenAt = now;
    for (let user = this.#nextFull(); user !== undefined; user = this.#nextFull()) {
      const needed = user.fullAt - this.#given;
      const part = left / this.#users.size;
      if (part < needed) {
        this.#given += part;
        return;
      }
      left -= needed * this.#users.size;
      this.#given = user.fullAt;
      this.#queue.removeFirst();
      this.#users.delete(user.name);
    }
  }

  #nextFull(): User | undefined {
    let { first } = this.#queue;
    while (first !== undefined && first.queuedAt < first.fullAt) {
      first.queuedAt = first.fullAt;
      this.#queue.demoteFirst();
      ({ first } = this.#queue);
    }
    return first;
  }
}

const UNLIMITED: RateShare = { spend: () => undefined, waitMs: () => 0, isExhausted: () => false };
