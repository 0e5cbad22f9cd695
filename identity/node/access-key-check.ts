/**
 * Says of a text whether it is an access key that counts.
 *
 * A key counts if it is in the list, is the text that was signed for its row, has not expired and is not revoked. What
 * is remembered between two calls is only that a text is genuine, which nothing can change. Whether it counts is read
 * from its row each time, so nothing that was remembered outlives a revocation, whichever process it came from.
 *
 * Signatures are deterministic, so a row has one text: it is signed again once for each key and compared by its hash,
 * and no signature that a caller sent is ever computed with. A flood of forgeries costs a look at the row for each, so
 * nobody's key has to be refused because of them.
 */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { PublicKey } from '../../channel/keys.ts';
import { confirmationOf, type AccessClaims } from '../access-claims.ts';
import { findAccessKey, MAX_ACCESS_KEY_CHARACTERS, signAccessKey } from '../access-key.ts';
import { addressOf, type Address } from '../address.ts';
import type { SigningKey } from '../secret-keys.ts';
import type { AccessKeyRecord, AccessKeyTable } from './access-key-table.ts';
import type { Identity } from './open-identity.ts';
import { createLruCache } from './lru-cache.ts';

/** Texts that are remembered to be genuine; the one that was used longest ago goes first. */
const MAX_REMEMBERED = 1024;
/** How exactly the time of a key's last use is kept: a write for each request would be too many. */
const LAST_USE_STEP_S = 60;

/** Why a key does not count. For the log alone: outside, all of them look the same. */
export type AccessKeyRefusal =
  /** Not the text of any key. */
  | 'malformed'
  /** No key of this name was made here, or the identity is another one since. */
  | 'not_ours'
  /** A name of ours, and not what we signed under it. */
  | 'forged'
  /** Goes before `expired`. */
  | 'revoked'
  | 'expired'
  /** A device's grant, outside that device's sealed calls. */
  | 'device_bound';

export type AccessKeyVerdict =
  | { readonly counts: true; readonly key: AccessClaims }
  /** `kid` is what the text says, if it says anything: a name to log, not one to believe. */
  | { readonly counts: false; readonly refusal: AccessKeyRefusal; readonly kid: string | undefined };

/** Whoever signs keys here. */
export type Issuers = Pick<Identity, 'masterKey' | 'agentKey'>;

/** @param agentIndex the agent's; the master key signs where there is none */
export function signerOf(identity: Issuers, agentIndex: number | undefined): SigningKey {
  return agentIndex === undefined ? identity.masterKey() : identity.agentKey(agentIndex);
}

interface CheckOptions {
  readonly table: AccessKeyTable;
  readonly identity: Issuers;
  readonly nowS: () => number;
}

/** @returns the check: its `device` is the static key that the other end of a sealed call has proved */
export function createAccessKeyCheck({
  table,
  identity,
  nowS,
}: CheckOptions): (token: string, device?: PublicKey) => AccessKeyVerdict {
  const genuine = createLruCache<AccessClaims>(MAX_REMEMBERED);
  const addresses = createLruCache<Address>(MAX_REMEMBERED);
  const addressOfIssuer = (agentIndex: number | undefined): Address => {
    const name = String(agentIndex);
    const address = addresses.get(name) ?? addressOf(signerOf(identity, agentIndex));
    addresses.set(name, address);
    return address;
  };
  const hashes = createLruCache<string>(MAX_REMEMBERED);
  const hashOfKey = ({ kid, agentIndex }: AccessKeyRecord, claims: AccessClaims): string => {
    const hash = hashes.get(kid) ?? hashOf(signAccessKey(claims, signerOf(identity, agentIndex)));
    hashes.set(kid, hash);
    return hash;
  };
  return (token, device) => {
    if (token.length > MAX_ACCESS_KEY_CHARACTERS) return { counts: false, refusal: 'malformed', kid: undefined };
    const name = hashOf(token);
    const remembered = genuine.get(name);
    const claims = remembered ?? checkGenuine(token, { table, addressOfIssuer, hashOfKey });
    if (typeof claims === 'string') return { counts: false, refusal: claims, kid: findAccessKey(token)?.claims.kid };
    if (remembered === undefined) genuine.set(name, claims);
    const refusal = refusalOf(claims, { table, atS: nowS(), device });
    return refusal === undefined ? { counts: true, key: claims } : { counts: false, refusal, kid: claims.kid };
  };
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}

interface Checking {
  readonly table: AccessKeyTable;
  readonly addressOfIssuer: (agentIndex: number | undefined) => Address;
  /** Of the one text of this key: a signature the first time, about half a millisecond. */
  readonly hashOfKey: (key: AccessKeyRecord, claims: AccessClaims) => string;
}

/** The claims of a text that was made here, whether or not it still counts. Cheap refusals first. */
function checkGenuine(
  token: string,
  { table, addressOfIssuer, hashOfKey }: Checking,
): AccessClaims | Extract<AccessKeyRefusal, 'malformed' | 'not_ours' | 'forged'> {
  const found = findAccessKey(token);
  if (found === undefined) return 'malformed';
  const made = table.find(found.claims.kid);
  if (made === undefined || addressOfIssuer(made.agentIndex) !== made.issuer) return 'not_ours';
  const { claims } = found;
  return isDeepStrictEqual(claims, claimsOf(made)) && hashOfKey(made, claims) === hashOf(token) ? claims : 'forged';
}

/** What a key says that has this row. */
function claimsOf({ kid, issuer, scope, issuedAtS, expiresAtS, label, confirmation }: AccessKeyRecord): AccessClaims {
  return {
    kid,
    issuer,
    scope,
    issuedAtS,
    ...(expiresAtS === undefined ? {} : { expiresAtS }),
    ...(label === undefined ? {} : { label }),
    ...(confirmation === undefined ? {} : { confirmation }),
  };
}

interface Showing {
  readonly table: AccessKeyTable;
  readonly atS: number;
  readonly device: PublicKey | undefined;
}

/** Why a genuine key does not count, if so; a use of one that does is noted. */
function refusalOf(
  { kid, expiresAtS, confirmation }: AccessClaims,
  { table, atS, device }: Showing,
): Extract<AccessKeyRefusal, 'not_ours' | 'revoked' | 'expired' | 'device_bound'> | undefined {
  const state = table.state(kid);
  if (state === undefined) return 'not_ours';
  if (state.revokedAtS !== undefined) return 'revoked';
  if (expiresAtS !== undefined && atS >= expiresAtS) return 'expired';
  if (confirmation !== undefined && (device === undefined || confirmationOf(device) !== confirmation)) {
    return 'device_bound';
  }
  if (Math.abs(atS - (state.lastUsedAtS ?? 0)) >= LAST_USE_STEP_S) noteUse(table, kid, atS);
  return undefined;
}

/** A disk that is full is no reason to turn a caller away. */
function noteUse(table: AccessKeyTable, kid: string, atS: number): void {
  try {
    table.touch(kid, atS);
  } catch {
    // The next use tries again.
  }
}
