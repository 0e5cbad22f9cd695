/** HKDF with SHA-256, RFC 5869, and the X(prk, label, context, length) of PROTOCOL.md, which is its second half. */
import { concatBytes, EMPTY, utf8ToBytes } from './bytes.ts';
import type { Crypto } from './crypto.ts';

const HASH_BYTES = 32;

/** RFC 5869 §2.2. */
export function hkdfExtract(crypto: Crypto, salt: Uint8Array, inputKey: Uint8Array): Uint8Array {
  return crypto.hmacSha256(salt, inputKey);
}

/** RFC 5869 §2.3. @throws RangeError beyond 255 blocks */
export function hkdfExpand(crypto: Crypto, prk: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  const blocks = Math.ceil(length / HASH_BYTES);
  if (blocks > 255) throw new RangeError(`HKDF-SHA-256 can't make ${length} bytes`);
  const output = new Uint8Array(blocks * HASH_BYTES);
  let previous = EMPTY;
  for (let block = 1; block <= blocks; block++) {
    previous = crypto.hmacSha256(prk, concatBytes(previous, info, Uint8Array.of(block)));
    output.set(previous, (block - 1) * HASH_BYTES);
  }
  return output.subarray(0, length);
}

export interface Expansion {
  /** Says what the bytes are for. Two labels never share one meaning, so no two derived keys are ever the same. */
  readonly label: string;
  readonly context: Uint8Array;
  readonly length: number;
}

/** X(prk, label, context, length) = HKDF-Expand(prk, label ‖ context, length). */
export function expandLabel(crypto: Crypto, prk: Uint8Array, expansion: Expansion): Uint8Array {
  return hkdfExpand(crypto, prk, concatBytes(utf8ToBytes(expansion.label), expansion.context), expansion.length);
}
