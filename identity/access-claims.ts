/**
 * What an access key says of itself. On the wire it is JSON in the one form of RFC 8785 (members sorted, no white space,
 * the shortest escapes), so that each set of claims has one encoding; whatever is not in that form is refused.
 *
 *     cnf    base64url   16 bytes: the first half of SHA-256(CS). The key is the grant of the device with this static key
 *     exp    seconds     since 1970, later than iat; absent: until it is revoked
 *     iat    seconds     since 1970
 *     iss    address     who signed: the master key's address, or for an agent's key that agent's
 *     kid    hex         8 bytes, random: the key's name
 *     lbl    text        what its owner calls it
 *     scope  text        "master" for every agent, or the address of the one agent, which is then the issuer's too
 *     v      1
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { findBase64url, formatBase64url } from '../channel/base64url.ts';
import { equalBytes, utf8ToBytes } from '../channel/bytes.ts';
import type { JsonObject } from '../channel/json.ts';
import { findJsonObject, isCount } from '../channel/json.ts';
import type { PublicKey } from '../channel/keys.ts';
import type { Address } from './address.ts';
import { findAddress } from './address.ts';

/** Everything, or one agent. */
export type Scope = 'master' | Address;

export interface AccessClaims {
  readonly kid: string;
  readonly issuer: Address;
  readonly scope: Scope;
  readonly issuedAtS: number;
  readonly expiresAtS?: number;
  readonly label?: string;
  readonly confirmation?: string;
}

const VERSION = 1;
export const MAX_LABEL_CHARACTERS = 64;
const CONFIRMATION_BYTES = 16;
/** The end of the year 9999: the last that every calendar prints. */
const MAX_TIME_S = 253_402_300_799;

/** Refused in a label: what a terminal obeys, what turns the reading direction round, halves of characters. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u;

/** What a key says that is the grant of the device with this static key. */
export function confirmationOf(deviceKey: PublicKey): string {
  return formatBase64url(sha256(deviceKey).subarray(0, CONFIRMATION_BYTES));
}

export function isKid(text: string): boolean {
  return /^[0-9a-f]{16}$/.test(text);
}

/** One to 64 characters that can be shown as they are. */
export function isLabel(text: string): boolean {
  const length = Array.from(text).length;
  return length > 0 && length <= MAX_LABEL_CHARACTERS && text.trim() === text && !UNPRINTABLE.test(text);
}

/** @throws RangeError for claims that `decodeClaims` would not take back */
export function encodeClaims(claims: AccessClaims): Uint8Array {
  if (!isValid(claims)) throw new RangeError('no access key may say this');
  return canonicalBytes(claims);
}

/** `undefined` for bytes that `encodeClaims` would not write. */
export function decodeClaims(bytes: Uint8Array): AccessClaims | undefined {
  const json = findJsonObject(bytes);
  const claims = json && readClaims(json);
  // An unknown member, another order, a space, a second escape: none of them comes back out.
  return claims !== undefined && isValid(claims) && equalBytes(canonicalBytes(claims), bytes) ? claims : undefined;
}

function canonicalBytes(claims: AccessClaims): Uint8Array {
  return utf8ToBytes(
    JSON.stringify({
      cnf: claims.confirmation,
      exp: claims.expiresAtS,
      iat: claims.issuedAtS,
      iss: claims.issuer,
      kid: claims.kid,
      lbl: claims.label,
      scope: claims.scope,
      v: VERSION,
    }),
  );
}

/** Looks at the members' types; `isValid` at what they say. */
function readClaims({ cnf, exp, iat, iss, kid, lbl, scope }: JsonObject): AccessClaims | undefined {
  const issuer = typeof iss === 'string' ? findAddress(iss) : undefined;
  if (issuer === undefined || typeof kid !== 'string' || !isCount(iat)) return undefined;
  if (scope !== 'master' && scope !== issuer) return undefined;
  return {
    kid,
    issuer,
    scope,
    issuedAtS: iat,
    ...(isCount(exp) ? { expiresAtS: exp } : {}),
    ...(typeof lbl === 'string' ? { label: lbl } : {}),
    ...(typeof cnf === 'string' ? { confirmation: cnf } : {}),
  };
}

function isTime(seconds: number): boolean {
  return isCount(seconds) && seconds <= MAX_TIME_S;
}

function isValid({ kid, issuer, scope, issuedAtS, expiresAtS, label, confirmation }: AccessClaims): boolean {
  return (
    isKid(kid) &&
    findAddress(issuer) !== undefined &&
    (scope === 'master' || scope === issuer) &&
    isTime(issuedAtS) &&
    (expiresAtS === undefined || (isTime(expiresAtS) && expiresAtS > issuedAtS)) &&
    (label === undefined || isLabel(label)) &&
    (confirmation === undefined || findBase64url(confirmation)?.length === CONFIRMATION_BYTES)
  );
}
