/** New connections from one address in one minute. An IPv6 network counts as one: whoever has one address has them all. */

const MINUTE_MS = 60_000;
/** Beyond that many addresses in a minute the rest shares one count: somebody has very many of them. */
const MAX_ADDRESSES = 100_000;

export class AddressLimit {
  readonly #perMinute: number;
  readonly #elapsedMs: () => number;
  readonly #counts = new Map<string, number>();
  #startedAt = 0;

  /** @param perMinute 0 is no limit */
  constructor({ perMinute, elapsedMs }: { perMinute: number; elapsedMs: () => number }) {
    this.#perMinute = perMinute;
    this.#elapsedMs = elapsedMs;
  }

  admit(address: string): boolean {
    if (this.#perMinute === 0) return true;
    const now = this.#elapsedMs();
    if (now - this.#startedAt >= MINUTE_MS) {
      this.#startedAt = now;
      this.#counts.clear();
    }
    const key = this.#counts.size < MAX_ADDRESSES ? networkOf(address) : 'others';
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count <= this.#perMinute;
  }
}

/** An IPv4 address, or the /64 of an IPv6 address. */
function networkOf(address: string): string {
  const mapped = /^::ffff:([0-9.]+)$/iu.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [head = '', tail] = address.split('::', 2);
  const groups = head.split(':');
  const tailGroups = tail === undefined || tail === '' ? [] : tail.split(':');
  if (tail !== undefined) while (groups.length + tailGroups.length < 8) groups.push('0');
  return [...groups, ...tailGroups].slice(0, 4).join(':');
}
