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
import { createAccessKeyTable, type AccessKeyRecord, type Database, type Migrate } from './access-key-table.ts';

/** 90 days, where its owner says nothing. */
export const DEFAULT_LIFETIME_S = 90 * 24 * 60 * 60;

const KID_BYTES = 8;

export interface AccessKeyWish {
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

/** Ends what goes on under these keys. Revoking returns when it is done. */
export type RevocationListener = (kids: readonly string[]) => Promise<void> | void;

/** Something that ends with certain keys, and in the same transaction. */
export interface RevocationPartner {
  /** The keys that are revoked together with these. */
  companionsOf(kids: readonly string[]): readonly string[];
  /** Called inside the transaction in which these keys stopped to count; where it throws, they still do. */
  strike(kids: readonly string[]): void;
}

export interface AccessKeyRegistry {
  /**
   * Makes a key; the text is shown once and kept nowhere. May be part of a larger transaction.
   * @throws RangeError for a wish that no key can fulfil
   */
  create(wish: AccessKeyWish): { readonly token: string; readonly key: AccessKeyRecord };
  find(kid: string): AccessKeyRecord | undefined;
  /** Newest first, those that count no more among them. */
  list(): readonly AccessKeyRecord[];
  /**
   * When this resolves, the key counts no more, survives as revoked any end of the process, and nothing goes on under it.
   * @returns `already` where it was revoked before; its listeners are told again
   * @throws what a listener threw, after all of them had their turn; the key is revoked all the same
   */
  revoke(kid: string): Promise<'revoked' | 'already' | 'unknown'>;
  /** As `revoke`, all at once. @returns those that were not revoked before */
  revokeAll(): Promise<readonly string[]>;
  /**
   * The first half of `revoke`, as part of a larger transaction: the keys count no more. `endUnder` has to follow it.
   * @returns the keys and all that go with them
   */
  strike(kids: readonly string[]): readonly string[];
  /** The second half: resolves when nothing goes on under these keys. @throws as `revoke` does */
  endUnder(kids: readonly string[]): Promise<void>;
  /** @param device the static key that the other end of the sealed call has proved, inside one */
  verify(token: string, device?: PublicKey): AccessKeyVerdict;
  /** @returns what takes the listener away again */
  onRevocation(listener: RevocationListener): () => void;
  /** From now on this takes part in every revocation. */
  join(partner: RevocationPartner): void;
}

interface RegistryOptions {
  readonly database: Database;
  readonly migrate: Migrate;
  readonly identity: Issuers;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly randomBytes: RandomBytes;
  /** Called inside the transaction of what it tells; where it throws, nothing happened. */
  readonly record: (event: AccessKeyEvent) => void;
}

export function createAccessKeyRegistry(options: RegistryOptions): AccessKeyRegistry {
  const { database, identity, now, randomBytes, record } = options;
  const table = createAccessKeyTable(database, options.migrate);
  const listeners = new Set<RevocationListener>();
  const partners: RevocationPartner[] = [];
  const nowS = (): number => Math.floor(now() / 1000);

  const keep = database.transaction((made: AccessKeyRecord) => {
    table.insert(made);
    record(creation(made));
  });
  const strike = database.transaction((named: readonly string[]) => {
    const all = [...new Set([...named, ...partners.flatMap((partner) => partner.companionsOf(named))])];
    const struck = all.filter((kid) => table.revoke(kid, nowS()));
    for (const kid of struck) record({ kind: 'key_revoked', kid });
    for (const partner of partners) partner.strike(struck);
    return { all, struck };
  });
  const endUnder = (kids: readonly string[]): Promise<void> => endAll(listeners, kids, database);

  return {
    create(wish) {
      const signer = signerOf(identity, wish.agentIndex);
      const claims = claimsOf(wish, { signer, issuedAtS: nowS(), kid: bytesToHex(randomBytes(KID_BYTES)) });
      const token = signAccessKey(claims, signer);
      const key = recordOf(claims, wish.agentIndex);
      keep.immediate(key);
      return { token, key };
    },
    find: (kid) => table.find(kid),
    list: () => table.list(),
    async revoke(kid) {
      if (table.find(kid) === undefined) return 'unknown';
      const { all, struck } = strike.immediate([kid]);
      await endUnder(all);
      return struck.includes(kid) ? 'revoked' : 'already';
    },
    async revokeAll() {
      const { struck } = strike.immediate(table.list().map(({ kid }) => kid));
      await endUnder(struck);
      return struck;
    },
    strike: (kids) => strike.immediate(kids).all,
    endUnder,
    verify: createAccessKeyCheck({ table, identity, nowS }),
    onRevocation(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    join: (partner) => void partners.push(partner),
  };
}

interface Signing {
  readonly signer: SigningKey;
  readonly issuedAtS: number;
  readonly kid: string;
}

function claimsOf(
  { agentIndex, label, lifetimeS = DEFAULT_LIFETIME_S, device }: AccessKeyWish,
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

async function endAll(
  listeners: ReadonlySet<RevocationListener>,
  kids: readonly string[],
  database: Database,
): Promise<void> {
  // The revocation is to outlive a power cut, too: this puts the write-ahead log on the disk (SQLite, "PRAGMA
  // synchronous": in NORMAL mode only a checkpoint does).
  if (!database.inTransaction) database.pragma('wal_checkpoint(PASSIVE)');
  const outcomes = await Promise.allSettled([...listeners].map(async (listener) => listener(kids)));
  const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  if (failures.length > 0) throw new AggregateError(failures, 'revoked, but something under the key did not end');
}
