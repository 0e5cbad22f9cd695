/**
 * The memory that request bodies take until their requests are answered: bounded for each client and for all of them.
 * What counts is what has arrived, never what was announced. While there is no room, no more of a body is read, and its
 * sender's connection fills up. (Bodies inside sealed calls have a budget of their own, `sealed/body-budget.ts`, which
 * refuses at once: a device's calls share their transport.)
 *
 * Incomplete bodies could all wait for each other. So the oldest that waits may exceed the limit, one at a time: the
 * sum is never more than the limit and one body.
 */
import { ServiceError } from '../core/errors.ts';
import { setProcessTimer, type SetTimer } from '../core/timer.ts';
import { RequestError } from './errors.ts';

const MIB = 1024 * 1024;

export interface BodyLimits {
  readonly clientBytes: number;
  readonly allBytes: number;
  /** How long one body may wait in all. */
  readonly timeoutMs: number;
}

export const BODY_LIMITS: BodyLimits = { clientBytes: 64 * MIB, allBytes: 256 * MIB, timeoutMs: 30_000 };

export interface BodyBudget {
  /** For one body. @param client whose limit it counts under */
  open(client: string): BodyLease;
  counts(): { readonly heldBytes: number; readonly waiting: number };
}

export interface BodyLease {
  /**
   * Resolves when so many bytes more may be held, or when the lease was given back.
   * @throws {RequestError} `rate_limited` where its client has too much in flight
   * @throws {ServiceError} `overloaded` where all clients together have
   */
  take(bytes: number): Promise<void>;
  /** Gives everything back. */
  release(): void;
}

interface BudgetOptions {
  readonly limits?: BodyLimits;
  readonly setTimer?: SetTimer;
  /** Milliseconds that never go back. */
  readonly elapsed?: () => number;
}

/** A limit, and who has gone over it. */
interface Pool {
  readonly maxBytes: number;
  heldBytes: number;
  leases: number;
  ahead: Lease | undefined;
}

interface Lease {
  /** Counts the leases: the lower, the older. */
  readonly number: number;
  readonly client: string;
  readonly pools: readonly [client: Pool, all: Pool];
  heldBytes: number;
  timeoutMs: number;
  isReleased: boolean;
  waiting: Waiting | undefined;
}

interface Waiting {
  readonly bytes: number;
  readonly go: () => void;
}

export function createBodyBudget({
  limits = BODY_LIMITS,
  setTimer = setProcessTimer,
  elapsed = () => performance.now(),
}: BudgetOptions = {}): BodyBudget {
  const budget = new Budget({ limits, setTimer, elapsed });
  return {
    open(client) {
      const lease = budget.open(client);
      return {
        take: (bytes) => budget.take(lease, bytes),
        release: () => budget.release(lease),
      };
    },
    counts: () => budget.counts(),
  };
}

class Budget {
  readonly #options: Required<BudgetOptions>;
  readonly #all: Pool;
  readonly #clients = new Map<string, Pool>();
  /** Oldest first, each with what it waits for. */
  readonly #waiting: Lease[] = [];
  #lastNumber = 0;

  constructor(options: Required<BudgetOptions>) {
    this.#options = options;
    this.#all = newPool(options.limits.allBytes);
  }

  open(name: string): Lease {
    const client = this.#clients.get(name) ?? newPool(this.#options.limits.clientBytes);
    this.#clients.set(name, client);
    this.#lastNumber += 1;
    const { timeoutMs } = this.#options.limits;
    const lease: Lease = {
      number: this.#lastNumber,
      client: name,
      pools: [client, this.#all],
      heldBytes: 0,
      timeoutMs,
      isReleased: false,
      waiting: undefined,
    };
    for (const pool of lease.pools) pool.leases += 1;
    return lease;
  }

  counts(): ReturnType<BodyBudget['counts']> {
    return { heldBytes: this.#all.heldBytes, waiting: this.#waiting.length };
  }

  take(lease: Lease, bytes: number): Promise<void> {
    if (lease.isReleased || this.#takesAtOnce(lease, bytes)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const since = this.#options.elapsed();
      const leave = (): void => {
        cancel();
        lease.timeoutMs -= this.#options.elapsed() - since;
        lease.waiting = undefined;
        this.#waiting.splice(this.#placeOf(lease), 1);
      };
      const cancel = this.#options.setTimer(Math.max(0, lease.timeoutMs), () => {
        leave();
        reject(tooMuch(lease, bytes));
      });
      const go = (): void => {
        leave();
        resolve();
      };
      lease.waiting = { bytes, go };
      this.#waiting.splice(this.#placeOf(lease), 0, lease);
      this.#serve();
    });
  }

  release(lease: Lease): void {
    if (lease.isReleased) return;
    lease.isReleased = true;
    for (const pool of lease.pools) letGo(pool, lease);
    if (lease.pools[0].leases === 0) this.#clients.delete(lease.client);
    lease.waiting?.go();
    this.#serve();
  }

  #takesAtOnce(lease: Lease, bytes: number): boolean {
    if (this.#waiting.length > 0 || !lease.pools.every((pool) => fits(pool, bytes))) return false;
    hold(lease, bytes);
    return true;
  }

  /** Where it stands in the line, or would. */
  #placeOf({ number }: Lease): number {
    let [low, high] = [0, this.#waiting.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#waiting[middle]?.number ?? Infinity) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Oldest first; where one has to wait for a limit, so have those after it. */
  #serve(): void {
    const full = new Set<Pool>();
    let at = 0;
    // Past the limit of all gets nobody but the one that has gone over it.
    while (!full.has(this.#all)) {
      const lease = this.#waiting[at];
      if (lease === undefined) break;
      // Whoever is served leaves the line.
      if (!this.#serveOne(lease, full)) at += 1;
    }
    if (this.#all.ahead !== undefined) this.#serveOne(this.#all.ahead, full);
  }

  /** @param full the limits that an older one waits for. @returns whether it got what it waits for */
  #serveOne(lease: Lease, full: Set<Pool>): boolean {
    if (lease.waiting === undefined) return false;
    const { bytes, go } = lease.waiting;
    if (this.#all.ahead !== lease && !mayTake(lease, bytes, full)) return false;
    for (const pool of lease.pools) if (!fits(pool, bytes)) pool.ahead ??= lease;
    hold(lease, bytes);
    go();
    return true;
  }
}

function newPool(maxBytes: number): Pool {
  return { maxBytes, heldBytes: 0, leases: 0, ahead: undefined };
}

function fits(pool: Pool, bytes: number): boolean {
  return pool.heldBytes + bytes <= pool.maxBytes;
}

/** @param full the limits that an older one waits for; those that this one has to wait for are added */
function mayTake(lease: Lease, bytes: number, full: Set<Pool>): boolean {
  let may = true;
  for (const pool of lease.pools) {
    if (pool.ahead === lease) continue;
    if (!full.has(pool) && (fits(pool, bytes) || pool.ahead === undefined)) continue;
    full.add(pool);
    may = false;
  }
  return may;
}

function hold(lease: Lease, bytes: number): void {
  lease.heldBytes += bytes;
  for (const pool of lease.pools) pool.heldBytes += bytes;
}

function letGo(pool: Pool, lease: Lease): void {
  pool.heldBytes -= lease.heldBytes;
  pool.leases -= 1;
  if (pool.ahead === lease) pool.ahead = undefined;
}

function tooMuch({ pools: [client] }: Lease, bytes: number): Error {
  if (fits(client, bytes)) {
    return new ServiceError('overloaded', 'Too many large requests are under way. Try again in a moment.');
  }
  return new RequestError('rate_limited', 'This caller has too many large requests under way. Try again in a moment.', {
    headers: { 'retry-after': '5' },
  });
}
