/** How a counter becomes a nonce of ChaCha20-Poly1305: Noise rev 34 §12.3, and the records of a call just so. */
import { AEAD_NONCE_BYTES } from './crypto.ts';

/**
 *     offset  size  field
 *          0     4  zero
 *          4     8  counter, little-endian
 */
export function nonceOf(counter: number): Uint8Array {
  // Also what keeps a counter from wrapping: the message after the last one can't be sealed.
  if (!Number.isSafeInteger(counter) || counter < 0) throw new RangeError(`no nonce for ${counter}`);
  const nonce = new Uint8Array(AEAD_NONCE_BYTES);
  for (let at = 4, rest = counter; rest > 0; at++, rest = Math.floor(rest / 256)) nonce[at] = rest % 256;
  return nonce;
}
