/**
 * Records: how the bytes of one direction of one call are cut up, padded and sealed.
 *
 *     record      offset  size  field
 *                      0     4  length of the ciphertext, tag included: 20 to 65552
 *                      4     1  flags
 *                      5     n  ciphertext
 *     plaintext        0     4  length of the data
 *                      4     n  data
 *                    4+n     -  zero
 *     key                       that of the call and direction
 *     nonce                     the record's index 0, 1, 2, …; it is not on the wire
 *     associated data           the five bytes before the ciphertext, as sent
 *
 * The key binds session, direction and call, the nonce the place in the stream, the associated data the flags and the
 * length. A stream is well formed if record 0 and no other has HEAD, the last and no other has FIN, ABORT comes only
 * with FIN, and PAD comes alone and without data.
 */
import { AEAD_TAG_BYTES } from './crypto.ts';

export const FLAG = {
  /** The last record. Without it a stream was cut. */
  fin: 1,
  /** The data is the head of the request or answer, all of it. */
  head: 2,
  /** The sender gave up; the data says why. */
  abort: 4,
  /** Nothing but a sign of life. */
  pad: 8,
} as const;

export const RECORD_HEADER_BYTES = 5;
export const DATA_LENGTH_BYTES = 4;
export const MAX_PLAINTEXT_BYTES = 65_536;
/** What fits into one record. */
export const MAX_DATA_BYTES = MAX_PLAINTEXT_BYTES - DATA_LENGTH_BYTES;
export const MIN_CIPHERTEXT_BYTES = DATA_LENGTH_BYTES + AEAD_TAG_BYTES;
export const MAX_CIPHERTEXT_BYTES = MAX_PLAINTEXT_BYTES + AEAD_TAG_BYTES;

/** No plaintext is shorter, and that of a stream is a multiple of it. */
const PADDING_BLOCK_BYTES = 256;

/**
 * How much the length of a record may tell. `body`: the next power of two, for heads and for bodies whose length is
 * known at once. `stream`: the next multiple of 256, for output that is sent as it comes.
 */
export type Padding = 'body' | 'stream';

/** The length of the plaintext for so much data. @throws RangeError if it doesn't fit into one record */
export function paddedBytes(dataBytes: number, padding: Padding): number {
  if (dataBytes > MAX_DATA_BYTES) throw new RangeError(`${dataBytes} bytes don't fit into a record`);
  const used = DATA_LENGTH_BYTES + dataBytes;
  if (padding === 'stream') return Math.ceil(used / PADDING_BLOCK_BYTES) * PADDING_BLOCK_BYTES;
  return Math.max(PADDING_BLOCK_BYTES, 2 ** Math.ceil(Math.log2(used)));
}

/** Whether these flags may stand on the record of this index. That nothing follows a FIN is the reader's to see. */
export function areFlagsAllowed(flags: number, index: number): boolean {
  if (flags === FLAG.pad) return index > 0;
  if ((flags & ~(FLAG.fin | FLAG.head | FLAG.abort)) !== 0) return false;
  if ((flags & FLAG.abort) !== 0 && (flags & FLAG.fin) === 0) return false;
  return ((flags & FLAG.head) !== 0) === (index === 0);
}
