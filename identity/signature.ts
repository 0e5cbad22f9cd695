/**
 * Recoverable signatures of secp256k1 over Keccak-256, which name their signer by themselves:
 *
 *     offset  size  field
 *          0    32  r
 *         32    32  s   at most half the group's order (BIP-62), so that a signature has one form
 *         64     1  v   27 or 28: which of two points r stands for
 *
 * What is signed is the hash of 0x19 ‖ domain ‖ ":\n" ‖ decimal length ‖ message, the shape of EIP-191: the first byte
 * begins no transaction, and no message of one domain is ever a message of another.
 */
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes, utf8ToBytes } from '../channel/bytes.ts';
import type { Address } from './address.ts';
import { addressOfPublicKey } from './address.ts';
import type { SigningKey } from './secret-keys.ts';

export const SIGNATURE_BYTES = 65;
const V_OFFSET = 27;

/** The bytes come hashed already, by `messageHash`. */
const HASHED = { prehash: false } as const;

/** @param domain ASCII; what kind of message this is */
export function messageHash(domain: string, message: Uint8Array): Uint8Array {
  return keccak_256(concatBytes(utf8ToBytes(`\u0019${domain}:\n${message.length}`), message));
}

/** Deterministic (RFC 6979): the same message and key give the same signature. */
export function signHash(hash: Uint8Array, key: SigningKey): Uint8Array {
  const [recovery = 0, ...rs] = secp256k1.sign(hash, key, { ...HASHED, format: 'recovered' });
  return Uint8Array.of(...rs, recovery + V_OFFSET);
}

/** True for bytes in the one form that a signature has; whose it is, if anybody's, is another question. */
export function isSignature(bytes: Uint8Array): boolean {
  const v = bytes[SIGNATURE_BYTES - 1];
  if (bytes.length !== SIGNATURE_BYTES || (v !== V_OFFSET && v !== V_OFFSET + 1)) return false;
  try {
    return !secp256k1.Signature.fromBytes(bytes.subarray(0, -1), 'compact').hasHighS();
  } catch {
    return false;
  }
}

/** Whose signature it is; `undefined` if it can be nobody's. About a millisecond. */
export function findSigner(hash: Uint8Array, signature: Uint8Array): Address | undefined {
  if (!isSignature(signature)) return undefined;
  const recovery = (signature[SIGNATURE_BYTES - 1] ?? 0) - V_OFFSET;
  const recovered = concatBytes(Uint8Array.of(recovery), signature.subarray(0, -1));
  try {
    // Not by `secp256k1.recoverPublicKey`, which compresses the point: undoing that costs a square root.
    return addressOfPublicKey(
      secp256k1.Signature.fromBytes(recovered, 'recovered').recoverPublicKey(hash).toBytes(false),
    );
  } catch {
    // No point of the curve has this r.
    return undefined;
  }
}
