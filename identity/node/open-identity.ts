/**
 * The identity of one `SVC_HOME`: the master key, and what else stays secret for as long as the folder lives. Opening it
 * may take seconds (a store that waits to be unlocked, a passphrase that is stretched), so nobody waits for it who does
 * not need it.
 */
import { equalBytes } from '../../channel/bytes.ts';
import { addressOf, type Address } from '../address.ts';
import { deriveAgentKey } from '../agent-key.ts';
import {
  asAuditKey,
  asColumnKey,
  asGatewayKey,
  asMasterKey,
  SECRET_BYTES,
  type AgentKey,
  type AuditKey,
  type ColumnKey,
  type GatewayKey,
  type MasterKey,
} from '../secret-keys.ts';
import { deriveRelayKey, type RelayKey } from '../relay-key.ts';
import { chooseStore, type StoreOptions } from './choose-store.ts';
import { readIdentityRecord, writeIdentityRecord, type IdentityRecord } from './identity-record.ts';
import { IdentityError, REPAIR, type SecretStore, type StoreKind } from './secret-store.ts';

/** Functions, not fields: what prints this object prints no key. */
export interface Identity {
  readonly masterAddress: Address;
  /** Where the secrets are, and that as a sentence for the owner. */
  readonly store: { readonly kind: StoreKind; readonly description: string };
  masterKey(): MasterKey;
  /** @throws RangeError for an index that is no u32 */
  agentKey(index: number): AgentKey;
  gatewayKey(): GatewayKey;
  /** @param origin the relay's */
  relayKey(origin: string): RelayKey;
  columnKey(): ColumnKey;
  auditKey(): AuditKey;
}

/** What lies in the store, under which names. */
export const SECRET_NAMES = ['master', 'gateway', 'columns', 'audit'] as const;
export type SecretName = (typeof SECRET_NAMES)[number];

/**
 * The identity of this folder, made if it has none yet. For one folder only one process may do this at a time: whoever
 * holds its lock.
 * @throws {IdentityError} where the store does not open, or lacks what was put there; nothing is made anew then
 */
export async function openOrCreateIdentity(options: StoreOptions): Promise<Identity> {
  const found = await readIdentityRecord(options.home);
  const store = await chooseStore(found, options);
  // Before the first secret goes there: a start that is cut short must not look for another store the next time.
  const record = found ?? (await beginRecord(store, options));
  const identity = await readSecrets(store, (name) => makeSecret(name, { record, store, options }));
  requireSameMaster(record, identity);
  if (record.address === undefined || record.secrets.length < SECRET_NAMES.length) {
    await writeRecord(store, { address: identity.masterAddress, secrets: SECRET_NAMES }, options);
  }
  return identity;
}

/**
 * The identity of this folder as it is. Any number of processes may, also while a server runs.
 * @throws {IdentityError} also where there is none
 */
export async function openIdentity(options: StoreOptions): Promise<Identity> {
  const record = await readIdentityRecord(options.home);
  if (record?.address === undefined) throw noIdentity(options.home);
  const store = await chooseStore(record, options);
  const identity = await readSecrets(store, (name) => Promise.reject(missingSecret(name, store)));
  requireSameMaster(record, identity);
  return identity;
}

async function readSecrets(
  store: SecretStore,
  otherwise: (name: SecretName) => Promise<Uint8Array>,
): Promise<Identity> {
  const read = async <Key>(name: SecretName, asKey: (bytes: Uint8Array) => Key): Promise<Key> =>
    asRole(name, asKey, (await store.get(name)) ?? (await otherwise(name)));
  const master = await read('master', asMasterKey);
  const gateway = await read('gateway', asGatewayKey);
  const columns = await read('columns', asColumnKey);
  const audit = await read('audit', asAuditKey);
  return {
    masterAddress: addressOf(master),
    store: { kind: store.kind, description: store.description },
    masterKey: () => master,
    agentKey: (index) => deriveAgentKey(master, index),
    gatewayKey: () => gateway,
    relayKey: (origin) => deriveRelayKey(master, origin),
    columnKey: () => columns,
    auditKey: () => audit,
  };
}

function asRole<Key>(name: SecretName, asKey: (bytes: Uint8Array) => Key, bytes: Uint8Array): Key {
  try {
    return asKey(bytes);
  } catch (cause) {
    throw new IdentityError('corrupt', `the secret "${name}" in the store is not one. ${REPAIR}`, { cause });
  }
}

interface Making {
  readonly record: IdentityRecord;
  readonly store: SecretStore;
  readonly options: StoreOptions;
}

async function makeSecret(name: SecretName, { record, store, options }: Making): Promise<Uint8Array> {
  if (record.secrets.includes(name)) throw missingSecret(name, store);
  const secret = options.randomBytes(SECRET_BYTES);
  await store.set(name, secret);
  const kept = await store.get(name);
  if (kept !== undefined && equalBytes(kept, secret)) return secret;
  throw new IdentityError('locked', `the store did not keep the secret "${name}". ${store.description}`);
}

function beginRecord(store: SecretStore, options: StoreOptions): Promise<IdentityRecord> {
  return writeRecord(store, { secrets: [] }, options);
}

export async function writeRecord(
  store: SecretStore,
  content: { readonly address?: Address; readonly secrets: readonly SecretName[] },
  { home, writeFile }: StoreOptions,
): Promise<IdentityRecord> {
  const record: IdentityRecord = { version: 1, store: store.kind, ...content, secrets: [...content.secrets] };
  await writeIdentityRecord(home, record, writeFile);
  return record;
}

function requireSameMaster(record: IdentityRecord, { masterAddress }: Identity): void {
  if (record.address === undefined || record.address === masterAddress) return;
  throw new IdentityError(
    'mismatch',
    `this folder's identity is ${record.address}, but the store holds the key of ${masterAddress}. ${REPAIR}`,
  );
}

export const missingSecret = (name: string, store: SecretStore) =>
  new IdentityError(
    'missing',
    `the secret "${name}" is gone. ${store.description} ${store.kind === 'keyring' ? MOVED : ''}${REPAIR}`,
  );

const MOVED = 'Its entries are named for the path of SVC_HOME: if the folder was moved, move it back. ';

const noIdentity = (home: string) =>
  new IdentityError(
    'no_identity',
    `${home} has no identity yet, or lost its identity.json. "postern serve" makes one at its first start, and finds the ` +
      'secrets again that are still in their store; "postern identity restore -" brings one back from its 24 words.',
  );
