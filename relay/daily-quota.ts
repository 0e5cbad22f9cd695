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

export class DailyQuota {
  readonly #bytesPerDay: number;
  readonly #now: () => number;
  /** By routing id and tag. */
  readonly #spent = new Map<string, Map<string, number>>();
  #day = 0;

  /** @param bytesPerDay 0 is no limit */
  constructor({ bytesPerDay, now }: { bytesPerDay: number; now: () => number }) {
    this.#bytesPerDay = bytesPerDay;
    this.#now = now;
  }

  spend({ routingId, tag }: QuotaUser, bytes: number): void {
    if (this.#bytesPerDay === 0) return;
    const byTag = this.#today(routingId) ?? new Map<string, number>();
    byTag.set(tag, (byTag.get(tag) ?? 0) + bytes);
    this.#spent.set(routingId, byTag);
  }

  isUsedUp({ routingId, tag }: QuotaUser): boolean {
    if (this.#bytesPerDay === 0) return false;
    const byTag = this.#today(routingId);
    if (byTag === undefined) return false;
    const inAll = [...byTag.values()].reduce((sum, bytes) => sum + bytes, 0);
    if (inAll < this.#bytesPerDay) return false;
    const users = byTag.has(tag) ? byTag.size : byTag.size + 1;
    return (byTag.get(tag) ?? 0) >= this.#bytesPerDay / users;
  }

  #today(routingId: string): Map<string, number> | undefined {
    const day = Math.floor(this.#now() / DAY_MS);
    if (day !== this.#day) this.#spent.clear();
    this.#day = day;
    return this.#spent.get(routingId);
  }
}
