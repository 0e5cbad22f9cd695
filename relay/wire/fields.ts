/** Big-endian fields, read and written one after the other; reading refuses what is not there, or too much. */
import { RELAY_CODE, RelayError } from './codes.ts';

export function malformed(what: string): RelayError {
  return new RelayError(RELAY_CODE.protocol, `a frame is malformed: ${what}`);
}

export class FieldReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = at;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  /** A view, not a copy. */
  bytes(length: number): Uint8Array {
    const at = this.#skip(length);
    return this.#bytes.subarray(at, at + length);
  }

  u8(): number {
    return this.#view.getUint8(this.#skip(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#skip(2));
  }

  u32(): number {
    return this.#view.getUint32(this.#skip(4));
  }

  /** A u64 that a JavaScript number holds exactly. */
  u53(): number {
    const value = this.#view.getBigUint64(this.#skip(8));
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw malformed('a number is too large');
    return Number(value);
  }

  /** LP16 of up to `limit` bytes. */
  prefixed(limit: number): Uint8Array {
    const length = this.u16();
    if (length > limit) throw malformed('a field is too long');
    return this.bytes(length);
  }

  /** LP16 of up to `limit` visible ASCII characters. */
  text(limit: number): string {
    const bytes = this.prefixed(limit);
    if (!bytes.every(isVisible)) throw malformed('a text is not ASCII');
    return String.fromCharCode(...bytes);
  }

  end(): void {
    if (this.left !== 0) throw malformed('bytes are left over');
  }

  #skip(length: number): number {
    if (this.left < length) throw malformed('it is too short');
    const at = this.#at;
    this.#at += length;
    return at;
  }
}

export class FieldWriter {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at: number;

  /** @param bytes as long as all that will be written, from `at` on */
  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = at;
  }

  bytes(value: Uint8Array): this {
    this.#bytes.set(value, this.#skip(value.length));
    return this;
  }

  fixed(value: Uint8Array, length: number): this {
    if (value.length !== length) throw new RangeError(`a field of ${length} bytes was given ${value.length}`);
    return this.bytes(value);
  }

  u8(value: number): this {
    this.#view.setUint8(this.#skip(1), unsigned(value, 0xff));
    return this;
  }

  u16(value: number): this {
    this.#view.setUint16(this.#skip(2), unsigned(value, 0xffff));
    return this;
  }

  u32(value: number): this {
    this.#view.setUint32(this.#skip(4), unsigned(value, 0xffff_ffff));
    return this;
  }

  u53(value: number): this {
    this.#view.setBigUint64(this.#skip(8), BigInt(unsigned(value, Number.MAX_SAFE_INTEGER)));
    return this;
  }

  prefixed(value: Uint8Array): this {
    return this.u16(value.length).bytes(value);
  }

  text(value: string): this {
    return this.prefixed(asciiBytes(value));
  }

  #skip(length: number): number {
    const at = this.#at;
    this.#at += length;
    return at;
  }
}

function unsigned(value: number, most: number): number {
  if (!Number.isInteger(value) || value < 0 || value > most) throw new RangeError('a number does not fit its field');
  return value;
}

/** @throws RangeError for what is not visible ASCII */
export function asciiBytes(text: string): Uint8Array {
  const codes = Array.from(text, (character) => character.codePointAt(0) ?? 0);
  if (!codes.every(isVisible)) throw new RangeError('a text of the relay is visible ASCII');
  return Uint8Array.from(codes);
}

/** The printed characters of ASCII; a blank is not one. */
function isVisible(code: number): boolean {
  return code > 0x20 && code < 0x7f;
}
