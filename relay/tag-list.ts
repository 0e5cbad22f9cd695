/** The tags that a gateway lets in: all that the relay knows of its devices, and another one every day. */
import type { Allowance, TagClass } from './wire/frame.ts';

export interface TagGrant {
  /** A name for the tag, to find it again. */
  readonly key: string;
  readonly tagClass: TagClass;
  readonly expiresAtMinute: number;
}

export class TagList {
  readonly #grants = new Map<string, TagGrant>();
  readonly #limit: number;
  readonly #now: () => number;

  constructor({ limit, now }: { limit: number; now: () => number }) {
    this.#limit = limit;
    this.#now = now;
  }

  /** @returns false if there are too many; those that fit count */
  allow(allowances: readonly Allowance[]): boolean {
    if (this.#grants.size + allowances.length > this.#limit) this.#dropExpired();
    for (const { tag, expiresAtMinute, tagClass } of allowances) {
      const key = keyOf(tag);
      if (this.#grants.size >= this.#limit && !this.#grants.has(key)) return false;
      this.#grants.set(key, { key, tagClass, expiresAtMinute });
    }
    return true;
  }

  /** @param tags none means all. @returns the keys of those that no longer count */
  deny(tags: readonly Uint8Array[]): ReadonlySet<string> {
    const keys = new Set(tags.length === 0 ? this.#grants.keys() : tags.map(keyOf));
    for (const key of keys) this.#grants.delete(key);
    return keys;
  }

  find(tag: Uint8Array): TagGrant | undefined {
    return this.findKey(keyOf(tag));
  }

  /** A tag that counts now. */
  findKey(key: string): TagGrant | undefined {
    const grant = this.#grants.get(key);
    return grant !== undefined && !this.#isExpired(grant) ? grant : undefined;
  }

  #dropExpired(): void {
    for (const grant of this.#grants.values()) if (this.#isExpired(grant)) this.#grants.delete(grant.key);
  }

  #isExpired({ expiresAtMinute }: TagGrant): boolean {
    return expiresAtMinute * 60_000 <= this.#now();
  }
}

function keyOf(tag: Uint8Array): string {
  return Buffer.from(tag.buffer, tag.byteOffset, tag.byteLength).toString('latin1');
}
