/** Seals the records of one direction of one call, one after the other. */
import { EMPTY, viewOf } from './bytes.ts';
import type { Crypto } from './crypto.ts';
import { AEAD_TAG_BYTES } from './crypto.ts';
import type { CallKey } from './keys.ts';
import { nonceOf } from './nonce.ts';
import type { Padding } from './record.ts';
import { DATA_LENGTH_BYTES, FLAG, MAX_DATA_BYTES, paddedBytes, RECORD_HEADER_BYTES } from './record.ts';

export interface SealOptions {
  /** This is the last record. */
  readonly last?: boolean;
  /** Default: `body`. */
  readonly padding?: Padding;
}

/** Calls out of order are our own mistake and a `TypeError`: no head, a second head, anything after the end. */
export class RecordSealer {
  readonly #crypto: Crypto;
  #key: CallKey | undefined;
  #index = 0;
  // What stands before the data, made in one place for all records: allocating is what a small record costs most.
  readonly #prefixBytes = new Uint8Array(RECORD_HEADER_BYTES + DATA_LENGTH_BYTES);
  readonly #prefix = viewOf(this.#prefixBytes);
  readonly #header = this.#prefixBytes.subarray(0, RECORD_HEADER_BYTES);

  /** The sealer owns the key from here on, and overwrites it after the last record. */
  constructor(crypto: Crypto, key: CallKey) {
    this.#crypto = crypto;
    this.#key = key;
  }

  /** Nothing can be sealed any more: the last record was, or the key was erased. */
  get isDone(): boolean {
    return this.#key === undefined;
  }

  /** Record 0. @throws RangeError if the head doesn't fit into one record */
  sealHead(head: Uint8Array, { last = false }: SealOptions = {}): Uint8Array {
    this.#assertHead(true);
    return this.#seal(head, FLAG.head | (last ? FLAG.fin : 0), 'body');
  }

  /** A record of the body, which may be empty. @throws RangeError if the data doesn't fit into one record */
  sealData(data: Uint8Array, { last = false, padding = 'body' }: SealOptions = {}): Uint8Array {
    this.#assertHead(false);
    return this.#seal(data, last ? FLAG.fin : 0, padding);
  }

  /** A whole body, cut into records of which the last one ends the stream. */
  *sealBody(body: Uint8Array): Generator<Uint8Array> {
    const lastAt = Math.max(0, Math.ceil(body.length / MAX_DATA_BYTES) - 1) * MAX_DATA_BYTES;
    for (let at = 0; at < lastAt; at += MAX_DATA_BYTES) yield this.sealData(body.subarray(at, at + MAX_DATA_BYTES));
    yield this.sealData(body.subarray(lastAt), { last: true });
  }

  /** A sign of life, of the length of the smallest record. */
  sealPad(): Uint8Array {
    this.#assertHead(false);
    return this.#seal(EMPTY, FLAG.pad, 'stream');
  }

  /** Ends the stream in the sender's name, so that it differs from a cut wire. It may be the first record. */
  sealAbort(reason: Uint8Array): Uint8Array {
    return this.#seal(reason, FLAG.abort | FLAG.fin | (this.#index === 0 ? FLAG.head : 0), 'body');
  }

  erase(): void {
    this.#key?.fill(0);
    this.#key = undefined;
  }

  #assertHead(expected: boolean): void {
    if ((this.#index === 0) !== expected) throw new TypeError('a stream has one head, and it comes first');
  }

  #seal(data: Uint8Array, flags: number, padding: Padding): Uint8Array {
    if (this.#key === undefined) throw new TypeError('this stream has ended');
    const ciphertextBytes = paddedBytes(data.length, padding) + AEAD_TAG_BYTES;
    this.#prefix.setUint32(0, ciphertextBytes);
    this.#prefix.setUint8(4, flags);
    this.#prefix.setUint32(RECORD_HEADER_BYTES, data.length);
    const record = new Uint8Array(RECORD_HEADER_BYTES + ciphertextBytes);
    record.set(this.#prefixBytes);
    record.set(data, RECORD_HEADER_BYTES + DATA_LENGTH_BYTES);
    // Counted before it is used: whatever happens in between, no index is used twice.
    const nonce = nonceOf(this.#index++);
    this.#crypto.aead.seal(this.#key, nonce, this.#header, record.subarray(RECORD_HEADER_BYTES));
    if ((flags & FLAG.fin) !== 0) this.erase();
    return record;
  }
}
