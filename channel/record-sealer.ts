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

export interface WholeStream {
  /** What is sent before the first record. */
  readonly before: Uint8Array;
  readonly head: Uint8Array;
  readonly body: Uint8Array;
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
    for (const { data, last } of piecesOf(body)) yield this.sealData(data, { last });
  }

  /**
   * A head and a whole body, which may be empty, in one piece of memory behind what stands before them: to join records
   * would be to copy a long body once more.
   */
  sealWhole({ before, head, body }: WholeStream): Uint8Array<ArrayBuffer> {
    this.#assertHead(true);
    const hasBody = body.length > 0;
    const records = [
      { data: head, flags: FLAG.head | (hasBody ? 0 : FLAG.fin) },
      ...(hasBody ? [...piecesOf(body)].map(({ data, last }) => ({ data, flags: last ? FLAG.fin : 0 })) : []),
    ].map((record) => ({ ...record, bytes: recordBytesFor(record.data.length, 'body') }));
    const all = new Uint8Array(records.reduce((sum, { bytes }) => sum + bytes, before.length));
    all.set(before);
    let at = before.length;
    for (const { data, flags, bytes } of records) {
      this.#sealInto(all.subarray(at, at + bytes), data, flags);
      at += bytes;
    }
    return all;
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
    const record = new Uint8Array(recordBytesFor(data.length, padding));
    this.#sealInto(record, data, flags);
    return record;
  }

  /** @param record all zero; what the data leaves of it is padding */
  #sealInto(record: Uint8Array, data: Uint8Array, flags: number): void {
    if (this.#key === undefined) throw new TypeError('this stream has ended');
    this.#prefix.setUint32(0, record.length - RECORD_HEADER_BYTES);
    this.#prefix.setUint8(4, flags);
    this.#prefix.setUint32(RECORD_HEADER_BYTES, data.length);
    record.set(this.#prefixBytes);
    record.set(data, RECORD_HEADER_BYTES + DATA_LENGTH_BYTES);
    // Counted before it is used: whatever happens in between, no index is used twice.
    const nonce = nonceOf(this.#index++);
    this.#crypto.aead.seal(this.#key, nonce, this.#header, record.subarray(RECORD_HEADER_BYTES));
    if ((flags & FLAG.fin) !== 0) this.erase();
  }
}

interface Piece {
  readonly data: Uint8Array;
  readonly last: boolean;
}

/** As large as records get; one, if there is nothing. */
function* piecesOf(body: Uint8Array): Generator<Piece> {
  for (let at = 0; at === 0 || at < body.length; at += MAX_DATA_BYTES) {
    yield { data: body.subarray(at, at + MAX_DATA_BYTES), last: at + MAX_DATA_BYTES >= body.length };
  }
}

/** @throws RangeError if the data doesn't fit into one record */
function recordBytesFor(dataBytes: number, padding: Padding): number {
  return RECORD_HEADER_BYTES + paddedBytes(dataBytes, padding) + AEAD_TAG_BYTES;
}
