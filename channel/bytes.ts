/** Big-endian integers, length prefixes and text, as the layouts of PROTOCOL.md use them. */
import { bytesToUtf8, equalBytes } from '@noble/ciphers/utils.js';
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js';

export { concatBytes, equalBytes, utf8ToBytes };

export const EMPTY: Uint8Array = new Uint8Array(0);

export function encodeU16(value: number): Uint8Array {
  const bytes = new Uint8Array(2);
  viewOf(bytes).setUint16(0, value);
  return bytes;
}

export function encodeU32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  viewOf(bytes).setUint32(0, value);
  return bytes;
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** LP16(x): u16 length ‖ x. @throws RangeError beyond 65535 bytes */
export function lengthPrefixed(bytes: Uint8Array): Uint8Array {
  if (bytes.length > 0xffff) throw new RangeError(`${bytes.length} bytes don't fit behind a 16-bit length`);
  return concatBytes(encodeU16(bytes.length), bytes);
}

/** `undefined` if the bytes are no UTF-8, or not in its one form (a byte-order mark is lost in decoding). */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  const text = bytesToUtf8(bytes);
  return equalBytes(utf8ToBytes(text), bytes) ? text : undefined;
}

/** True if every byte is zero. Looks at all of them, whatever it finds. */
export function isZero(bytes: Uint8Array): boolean {
  let seen = 0;
  for (const byte of bytes) seen |= byte;
  return seen === 0;
}
