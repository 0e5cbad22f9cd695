/**
 * Addresses: the name of a signing key. The last 20 bytes of the Keccak-256 of its public key, written with the checksum
 * of EIP-55, in which the case of the letters is 15 check bits on average.
 */
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import type { SigningKey } from './secret-keys.ts';

/** `0x` and 40 hexadecimal digits in the one case that EIP-55 gives them. */
export type Address = `0x${string}`;

export const ADDRESS_BYTES = 20;

/** @throws RangeError unless there are 20 bytes */
export function formatAddress(bytes: Uint8Array): Address {
  if (bytes.length !== ADDRESS_BYTES) throw new RangeError(`an address has 20 bytes, not ${bytes.length}`);
  const digits = bytesToHex(bytes);
  const hash = bytesToHex(keccak_256(utf8ToBytes(digits)));
  return `0x${digits.replaceAll(/[a-f]/g, (letter, at: number) => (hash.charAt(at) >= '8' ? letter.toUpperCase() : letter))}`;
}

/** `undefined` if the text is not what `formatAddress` would write: other letters, another length, a wrong checksum. */
export function findAddress(text: string): Address | undefined {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) return undefined;
  const address = formatAddress(hexToBytes(text.slice(2)));
  return address === text ? address : undefined;
}

/** @param publicKey of secp256k1, compressed or not. @throws for bytes that are no point of the curve */
export function addressOfPublicKey(publicKey: Uint8Array): Address {
  const point = secp256k1.Point.fromBytes(publicKey).toBytes(false);
  // Without the 0x04 that says "uncompressed" (SEC 1 §2.3.3).
  return formatAddress(keccak_256(point.subarray(1)).subarray(-ADDRESS_BYTES));
}

export function addressOf(key: SigningKey): Address {
  return addressOfPublicKey(secp256k1.getPublicKey(key));
}
