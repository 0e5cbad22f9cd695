/**
 * The access keys of this gateway: makes them, lists them, revokes them. `access-key-check.ts` says which ones count.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import type { PublicKey } from '../../channel/keys.ts';
import { confirmationOf, type AccessClaims, type Scope } from '../access-claims.ts';
import { signAccessKey } from '../access-key.ts';
import { addressOf } from '../address.ts';
import type { RandomBytes } from '../sealed-column.ts';
import type { SigningKey } from '../secret-keys.ts';
import { createAccessKeyCheck, signerOf, type AccessKeyVerdict, type Issuers } from './access-key-check.ts';
import type { Database } from '../../storage/database.ts';
import { createAccessKeyTable, type AccessKeyRecord } from './access-key-table.ts';
import {
  createKeyRevocation,
  UNKNOWN_REVOCATION,
  type Postpone,
  type Revocation,
  type RevocationListener,
  type RevocationOfKeys,
  type RevocationHook,
} from './key-revocation.ts';

/** 90 days, where its owner says nothing. */
export const DEFAULT_LIFETIME_S = 90 * 24 * 60 * 60;

const KID_BYTES = 8;

export interface AccessKeyParams {
  /** The agent that it is good for; every one, where none is named. */
  readonly agentIndex?: number | undefined;
  /** One that `isLabel` accepts. */
  readonly label?: string | undefined;
  /** Seconds; `null` for a key that never expires. */
  readonly lifetimeS?: number | null | undefined;
  /** The static key of the device whose grant it is, which alone may use it then. */
  readonly device?: PublicKey | undefined;
}

/** What happened to a key, for the audit log. */
export type AccessKeyEvent =
  | {
      readonly kind: 'key_created';
      readonly kid: string;
      readonly scope: Scope;
      readonly label: string | null;
      readonly expiresAtS: number | null;
      readonly isDeviceGrant: boolean;
    }
  | { readonly kind: 'key_revoked'; readonly kid: string };

export interface AccessKeyRegistry {
  /**
   * Makes a key; the text is shown once and kept nowhere. May be part of a larger transaction.
   * @throws RangeError for a params that no key can fulfil
   */
  create(params: AccessKeyParams): { readonly token: string; readonly key: AccessKeyRecord };
  find(kid: string): AccessKeyRecord | undefined;
  /** Newest first, those that count no more among them. */
  list(): readonly AccessKeyRecord[];
  /**
   * The key is refused from this call on. When it resolves, the key survives as revoked any end of the process, and
   * nothing goes on under it.
   * @throws what the database threw and nobody postponed: the key is refused then until the process ends
   * @throws what a listener threw, after all of them had their turn: the key is revoked all the same
   */
  revoke(kid: string): Promise<Revocation>;
  /** As `revoke`, all at once. */
  revokeAll(): Promise<RevocationOfKeys>;
  /** Whether it is revoked, though the database may not have it yet. */
  isRefused(kid: string): boolean;
  /**
   * The first half of `revoke`, as part of a larger transaction: the keys count no more. `endUnder` has to follow it.
   * @returns the keys and all that go with them
   */
  markRevoked(kids: readonly string[]): readonly string[];
  /** The second half: resolves when nothing goes on under these keys. @throws as `revoke` does */
  endUnder(kids: readonly string[]): Promise<void>;
  /** @param device the static key that the other end of the sealed call has proved, inside one */
  verify(token: string, device?: PublicKey): AccessKeyVerdict;
  /** @returns what takes the listener away again */
  onRevocation(listener: RevocationListener): () => void;
  /** From now on this takes part in every revocation. */
  join(hook: RevocationHook): void;
}

interface RegistryOptions {
  readonly database: Database;
  readonly identity: Issuers;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly randomBytes: RandomBytes;
  /** Called inside the transaction of what it tells; where it throws, nothing happened. */
  readonly record: (event: AccessKeyEvent) => void;
  readonly postpone?: Postpone | undefined;
}

export function createAccessKeyRegistry(options: RegistryOptions): AccessKeyRegistry {
  const { database, identity, now, randomBytes, record } = options;
  const table = createAccessKeyTable(database);
  const nowS = (): number => Math.floor(now() / 1000);
  const revocation = createKeyRevocation({
    database,
    table,
    nowS,
    record: (kid) => record({ kind: 'key_revoked', kid }),
    postpone: options.postpone,
  });
  const asRefused = (key: AccessKeyRecord): AccessKeyRecord =>
    key.revokedAtS === undefined && revocation.isRefused(key.kid) ? { ...key, revokedAtS: nowS() } : key;

  const keep = database.transaction((made: AccessKeyRecord) => {
    table.insert(made);
    record(creation(made));
  });
  return {
    create(params) {
      const signer = signerOf(identity, params.agentIndex);
      const claims = claimsOf(params, { signer, issuedAtS: nowS(), kid: bytesToHex(randomBytes(KID_BYTES)) });
      const token = signAccessKey(claims, signer);
      const key = recordOf(claims, params.agentIndex);
      keep.immediate(key);
      return { token, key };
    },
    find(kid) {
      const key = table.find(kid);
      return key && asRefused(key);
    },
    list: () => table.list().map(asRefused),
    async revoke(kid) {
      if (table.find(kid) === undefined) return UNKNOWN_REVOCATION;
      const { revoked, ...ended } = await revocation.revoke([kid]);
      return { result: revoked.includes(kid) ? 'revoked' : 'already', ...ended };
    },
    revokeAll: () =>
      revocation.revoke(table.list().flatMap(({ kid, revokedAtS }) => (revokedAtS === undefined ? [kid] : []))),
    isRefused: revocation.isRefused,
    markRevoked: revocation.markRevoked,
    endUnder: revocation.endUnder,
    verify: createAccessKeyCheck({ table: { ...table, state: revocation.state }, identity, nowS }),
    onRevocation: revocation.onRevocation,
    join: revocation.join,
  };
}

interface Signing {
  readonly signer: SigningKey;
  readonly issuedAtS: number;
  readonly kid: string;
}

function claimsOf(
  { agentIndex, label, lifetimeS = DEFAULT_LIFETIME_S, device }: AccessKeyParams,
  { signer, issuedAtS, kid }: Signing,
): AccessClaims {
  const issuer = addressOf(signer);
  return {
    kid,
    issuer,
    scope: agentIndex === undefined ? 'master' : issuer,
    issuedAtS,
    ...(lifetimeS === null ? {} : { expiresAtS: issuedAtS + lifetimeS }),
    ...(label === undefined ? {} : { label }),
    ...(device === undefined ? {} : { confirmation: confirmationOf(device) }),
  };
}

function recordOf(claims: AccessClaims, agentIndex: number | undefined): AccessKeyRecord {
  return {
    kid: claims.kid,
    scope: claims.scope,
    issuer: claims.issuer,
    agentIndex,
    label: claims.label,
    issuedAtS: claims.issuedAtS,
    expiresAtS: claims.expiresAtS,
    confirmation: claims.confirmation,
    revokedAtS: undefined,
    lastUsedAtS: undefined,
  };
}

function creation({ kid, scope, label, expiresAtS, confirmation }: AccessKeyRecord): AccessKeyEvent {
  return {
    kind: 'key_created',
    kid,
    scope,
    label: label ?? null,
    expiresAtS: expiresAtS ?? null,
    isDeviceGrant: confirmation !== undefined,
  };
}
