/**
 * Access keys, what a caller from another machine shows:
 *
 *     svc-v1 . base64url(claims) . hex(signature)
 *
 * Each key has one text: canonical claims, base64url without padding or stray bits, lower-case hex, low s. So the hash of
 * the text can stand for the key, and no second text of a revoked key is left to try.
 *
 * Reading and checking are two steps, since the first costs microseconds and the second a millisecond: whoever has a
 * list of the keys that were made looks there between the two.
 */
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { findBase64url, formatBase64url } from '../channel/base64url.ts';
import type { AccessClaims } from './access-claims.ts';
import { decodeClaims, encodeClaims } from './access-claims.ts';
import { addressOf } from './address.ts';
import type { SigningKey } from './secret-keys.ts';
import { findSigner, isSignature, messageHash, SIGNATURE_BYTES, signHash } from './signature.ts';

const PREFIX = 'svc-v1';
const DOMAIN = 'svc-v1 access key';

/** The longest claims (a label of 64 characters of four bytes, every member there) make a key of 765. */
export const MAX_ACCESS_KEY_CHARACTERS = 1024;

/** A key that was read and not checked: nothing in it may be believed yet. */
export interface UncheckedAccessKey {
  readonly claims: AccessClaims;
  readonly signature: Uint8Array;
}

/** @throws RangeError unless the key's address is the issuer's, or for claims that no key may have */
export function signAccessKey(claims: AccessClaims, key: SigningKey): string {
  if (addressOf(key) !== claims.issuer) throw new RangeError('another key than the issuer’s');
  const payload = encodeClaims(claims);
  const signature = signHash(messageHash(DOMAIN, payload), key);
  return `${PREFIX}.${formatBase64url(payload)}.${bytesToHex(signature)}`;
}

/** False for what is certainly no key; costs next to nothing. */
export function isShapedAsAccessKey(text: string): boolean {
  return text.length <= MAX_ACCESS_KEY_CHARACTERS && /^svc-v1\.[\w-]+\.[0-9a-f]+$/.test(text);
}

/** `undefined` if the text is not in the form that `signAccessKey` writes. Never throws, whatever the text. */
export function findAccessKey(text: string): UncheckedAccessKey | undefined {
  if (text.length > MAX_ACCESS_KEY_CHARACTERS) return undefined;
  const [prefix, payload, signature, ...rest] = text.split('.');
  if (prefix !== PREFIX || payload === undefined || signature === undefined || rest.length > 0) return undefined;
  const claimBytes = findBase64url(payload);
  const claims = claimBytes && decodeClaims(claimBytes);
  const signatureBytes = findSignature(signature);
  return claims && signatureBytes && { claims, signature: signatureBytes };
}

function findSignature(hex: string): Uint8Array | undefined {
  if (hex.length !== 2 * SIGNATURE_BYTES || !/^[0-9a-f]+$/.test(hex)) return undefined;
  const bytes = hexToBytes(hex);
  return isSignature(bytes) ? bytes : undefined;
}

/** True if the issuer that the key names signed it. Whether that issuer means anything here is the caller's to know. */
export function isSignedByIssuer({ claims, signature }: UncheckedAccessKey): boolean {
  return findSigner(messageHash(DOMAIN, encodeClaims(claims)), signature) === claims.issuer;
}
