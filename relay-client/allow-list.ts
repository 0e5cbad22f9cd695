/** What the relay has been told of who may come in, so that it is told of every change, and of nothing else. */
import { MAX_ALLOWANCES, MAX_DENIALS, type Allowance, type Frame, type TagClass } from '../relay/wire/frame.ts';

/** A tag that the relay lets in. */
export interface AllowedTag {
  /** 16 bytes. */
  readonly tag: Uint8Array;
  readonly expiresAtMs: number;
  readonly tagClass: TagClass;
}

export class AllowList {
  readonly #send: (frame: Frame) => void;
  /** By the relay's clock: how much it is ahead of ours. */
  readonly #skewMs: number;
  readonly #random: () => number;
  #told = new Map<string, Uint8Array>();

  constructor({ send, skewMs, random }: { send: (frame: Frame) => void; skewMs: number; random: () => number }) {
    this.#send = send;
    this.#skewMs = skewMs;
    this.#random = random;
  }

  /** Tells all of it, in an order that says nothing of whose they are, and takes back what is no longer in it. */
  tell(tags: readonly AllowedTag[]): void {
    const now = new Map(tags.map(({ tag }) => [keyOf(tag), tag]));
    const gone = [...this.#told].filter(([key]) => !now.has(key)).map(([, tag]) => tag);
    if (gone.length > 0) this.deny(gone);
    this.#told = now;
    const allowances = shuffle(
      tags.map((tag) => this.#allowance(tag)),
      this.#random,
    );
    for (let at = 0; at < allowances.length; at += MAX_ALLOWANCES)
      this.#send({ type: 'allow', allowances: allowances.slice(at, at + MAX_ALLOWANCES) });
  }

  deny(tags: readonly Uint8Array[]): void {
    for (const tag of tags) this.#told.delete(keyOf(tag));
    for (let at = 0; at < tags.length; at += MAX_DENIALS)
      this.#send({ type: 'deny', tags: tags.slice(at, at + MAX_DENIALS) });
  }

  #allowance({ tag, expiresAtMs, tagClass }: AllowedTag): Allowance {
    const minute = Math.ceil((expiresAtMs + this.#skewMs) / 60_000);
    return { tag, tagClass, expiresAtMinute: Math.min(Math.max(minute, 0), 0xffff_ffff) };
  }
}

function shuffle<Value>(values: readonly Value[], random: () => number): readonly Value[] {
  return values
    .map((value) => ({ value, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ value }) => value);
}

function keyOf(tag: Uint8Array): string {
  return Buffer.from(tag).toString('hex');
}
