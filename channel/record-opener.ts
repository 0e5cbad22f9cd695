/**
 * Opens the records of one direction of one call, from bytes that arrive in pieces of any size. Nothing of a record is
 * given out before all of it has authenticated, and no more than one unopened record is held, whatever length a header
 * claims.
 */
import { EMPTY, isZero, viewOf } from './bytes.ts';
import type { Crypto } from './crypto.ts';
import { ChannelError } from './errors.ts';
import type { CallKey } from './keys.ts';
import { nonceOf } from './nonce.ts';
import {
  areFlagsAllowed,
  DATA_LENGTH_BYTES,
  FLAG,
  MAX_CIPHERTEXT_BYTES,
  MIN_CIPHERTEXT_BYTES,
  RECORD_HEADER_BYTES,
} from './record.ts';

export type RecordEvent =
  | { readonly type: 'head'; readonly data: Uint8Array }
  | { readonly type: 'data'; readonly data: Uint8Array }
  /** The sender finished. */
  | { readonly type: 'end' }
  /** The sender gave up. */
  | { readonly type: 'abort'; readonly data: Uint8Array };

export class RecordOpener {
  readonly #crypto: Crypto;
  #key: CallKey | undefined;
  #index = 0;
  #state: 'open' | 'finished' | 'dead' = 'open';
  readonly #header = new Uint8Array(RECORD_HEADER_BYTES);
  #headerFilled = 0;
  /** The ciphertext so far of a record that came in more than one piece; memory that the next one that does takes over. */
  #box: Uint8Array | undefined;
  #boxFilled = 0;
  #isReading = false;

  /** The opener owns the key from here on, and overwrites it after the last record or the first bad one. */
  constructor(crypto: Crypto, key: CallKey) {
    this.#crypto = crypto;
    this.#key = key;
  }

  /** How many records have opened, so also the index of the next one. */
  get nextIndex(): number {
    return this.#index;
  }

  /** The last record was opened, and nothing came after it. */
  get isFinished(): boolean {
    return this.#state === 'finished';
  }

  /** Nothing can be opened any more: the last record was, one was refused, or the key was erased. */
  get isOver(): boolean {
    return this.#state !== 'open';
  }

  /** How much memory waits for the rest of a record. */
  get heldBytes(): number {
    return this.#box?.length ?? 0;
  }

  /**
   * Takes the next bytes of the stream. The events are made as they are asked for, so that a bad record is noticed after
   * the good ones before it, however the bytes were cut; whoever stops asking has given up the call.
   * @throws ChannelError `record_refused`
   */
  *push(bytes: Uint8Array): Generator<RecordEvent> {
    if (this.#isReading) throw new TypeError('the events of the last push are not all taken');
    this.#isReading = true;
    let drained = false;
    try {
      let rest = bytes;
      while (rest.length > 0) {
        this.#assertOpen();
        rest = rest.subarray(this.#headerFilled < RECORD_HEADER_BYTES ? this.#takeHeader(rest) : 0);
        if (this.#headerFilled < RECORD_HEADER_BYTES) break;
        const { taken, box } = this.#takeBox(rest);
        rest = rest.subarray(taken);
        if (box !== undefined) yield* this.#open(box);
      }
      drained = true;
    } finally {
      this.#isReading = false;
      if (this.#boxFilled === 0) this.#box = undefined;
      if (!drained && this.#state !== 'finished') this.#die();
    }
  }

  /** The transport has ended. @throws ChannelError `truncated` if the stream has not */
  end(): void {
    if (this.#state === 'finished') return;
    const code = this.#state === 'open' ? 'truncated' : 'record_refused';
    this.#die();
    throw new ChannelError(code);
  }

  /** The way that brought the records broke; on another one they come again from `nextIndex` on. */
  forgetPartialRecord(): void {
    this.#beginRecord();
    this.#box = undefined;
  }

  erase(): void {
    this.#key?.fill(0);
    this.#key = undefined;
    if (this.#state === 'open') this.#state = 'dead';
  }

  #beginRecord(): void {
    this.#headerFilled = 0;
    this.#boxFilled = 0;
  }

  #die(): void {
    this.erase();
    this.#state = 'dead';
    this.#box = undefined;
  }

  /** Also what refuses bytes after FIN. */
  #assertOpen(): void {
    if (this.#state === 'open') return;
    this.#die();
    throw new ChannelError('record_refused');
  }

  #takeHeader(bytes: Uint8Array): number {
    const taken = bytes.subarray(0, RECORD_HEADER_BYTES - this.#headerFilled);
    this.#header.set(taken, this.#headerFilled);
    this.#headerFilled += taken.length;
    if (this.#headerFilled === RECORD_HEADER_BYTES && !this.#isLengthAllowed())
      throw new ChannelError('record_refused');
    return taken.length;
  }

  get #length(): number {
    return viewOf(this.#header).getUint32(0);
  }

  /** Checked before a byte of the record is kept. */
  #isLengthAllowed(): boolean {
    return this.#length >= MIN_CIPHERTEXT_BYTES && this.#length <= MAX_CIPHERTEXT_BYTES;
  }

  /** The ciphertext once it is there: where it lies if it came in one piece, else copied together. */
  #takeBox(bytes: Uint8Array): { taken: number; box?: Uint8Array } {
    const length = this.#length;
    if (this.#boxFilled === 0 && bytes.length >= length) return { taken: length, box: bytes.subarray(0, length) };
    if (bytes.length === 0) return { taken: 0 };
    const piece = bytes.subarray(0, length - this.#boxFilled);
    const box = this.#boxWithRoom(this.#boxFilled + piece.length);
    box.set(piece, this.#boxFilled);
    this.#boxFilled += piece.length;
    return this.#boxFilled < length ? { taken: piece.length } : { taken: piece.length, box: box.subarray(0, length) };
  }

  /** Grows by doubling, up to the record's length: a header that claims much takes no memory for it. */
  #boxWithRoom(bytes: number): Uint8Array {
    const before = this.#box ?? EMPTY;
    if (bytes <= before.length) return before;
    const box = new Uint8Array(Math.min(this.#length, Math.max(bytes, 2 * before.length)));
    box.set(before);
    this.#box = box;
    return box;
  }

  *#open(box: Uint8Array): Generator<RecordEvent> {
    const flags = this.#header[4] ?? 0;
    const data = this.#openBox(box, flags);
    if (data === undefined) throw new ChannelError('record_refused');
    this.#index++;
    this.#beginRecord();
    if ((flags & FLAG.fin) !== 0) {
      this.#state = 'finished';
      this.erase();
    }
    yield* eventsOf(flags, data);
  }

  #openBox(box: Uint8Array, flags: number): Uint8Array | undefined {
    if (this.#key === undefined) return undefined;
    const plaintext = this.#crypto.aead.open(this.#key, nonceOf(this.#index), this.#header, box);
    if (plaintext === undefined || !areFlagsAllowed(flags, this.#index)) return undefined;
    const end = DATA_LENGTH_BYTES + viewOf(plaintext).getUint32(0);
    if (end > plaintext.length || !isZero(plaintext.subarray(end))) return undefined;
    if (flags === FLAG.pad && end !== DATA_LENGTH_BYTES) return undefined;
    return plaintext.subarray(DATA_LENGTH_BYTES, end);
  }
}

function* eventsOf(flags: number, data: Uint8Array): Generator<RecordEvent> {
  if ((flags & FLAG.abort) !== 0) {
    yield { type: 'abort', data };
    return;
  }
  if ((flags & FLAG.head) !== 0) yield { type: 'head', data };
  else if (data.length > 0) yield { type: 'data', data };
  if ((flags & FLAG.fin) !== 0) yield { type: 'end' };
}
