/** How many bytes each gateway had today (UTC). In memory: a restart forgets it. */

const DAY_MS = 86_400_000;

export class DailyQuota {
  readonly #bytesPerDay: number;
  readonly #now: () => number;
  readonly #spent = new Map<string, number>();
  #day = 0;

  /** @param bytesPerDay 0 is no limit */
  constructor({ bytesPerDay, now }: { bytesPerDay: number; now: () => number }) {
    this.#bytesPerDay = bytesPerDay;
    this.#now = now;
  }

  spend(routingId: string, bytes: number): void {
    if (this.#bytesPerDay === 0) return;
    this.#turnPage();
    this.#spent.set(routingId, (this.#spent.get(routingId) ?? 0) + bytes);
  }

  isUsedUp(routingId: string): boolean {
    if (this.#bytesPerDay === 0) return false;
    this.#turnPage();
    return (this.#spent.get(routingId) ?? 0) >= this.#bytesPerDay;
  }

  #turnPage(): void {
    const day = Math.floor(this.#now() / DAY_MS);
    if (day === this.#day) return;
    this.#day = day;
    this.#spent.clear();
  }
}
