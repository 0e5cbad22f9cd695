/**
 * How many bytes each gateway had today (UTC), and each tag of its. When a gateway's are used up, who had less than an
 * equal part of them goes on up to that: nobody loses his day by what another has sent. So all together have twice the
 * quota at most. In memory: a restart forgets it.
 */

const DAY_MS = 86_400_000;

/** Whose bytes they are. */
export interface QuotaUser {
  readonly routingId: string;
  /** The tag; empty for bytes that belong to nobody's stream any more. */
  readonly tag: string;
}

interface Spent {
  inAll: number;
  readonly byTag: Map<string, number>;
}

export class DailyQuota {
  readonly #bytesPerDay: number;
  readonly #now: () => number;
  /** By routing id. */
  readonly #spent = new Map<string, Spent>();
  #day = 0;

  /** @param bytesPerDay 0 is no limit */
  constructor({ bytesPerDay, now }: { bytesPerDay: number; now: () => number }) {
    this.#bytesPerDay = bytesPerDay;
    this.#now = now;
  }

  spend({ routingId, tag }: QuotaUser, bytes: number): void {
    if (this.#bytesPerDay === 0) return;
    const spent = this.#today(routingId) ?? { inAll: 0, byTag: new Map() };
    spent.inAll += bytes;
    spent.byTag.set(tag, (spent.byTag.get(tag) ?? 0) + bytes);
    this.#spent.set(routingId, spent);
  }

  isUsedUp({ routingId, tag }: QuotaUser): boolean {
    if (this.#bytesPerDay === 0) return false;
    const spent = this.#today(routingId);
    if (spent === undefined || spent.inAll < this.#bytesPerDay) return false;
    const { byTag } = spent;
    const users = byTag.has(tag) ? byTag.size : byTag.size + 1;
    return (byTag.get(tag) ?? 0) >= this.#bytesPerDay / users;
  }

  #today(routingId: string): Spent | undefined {
    const day = Math.floor(this.#now() / DAY_MS);
    if (day !== this.#day) this.#spent.clear();
    this.#day = day;
    return this.#spent.get(routingId);
  }
}
