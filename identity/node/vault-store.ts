/** Secrets in a sealed file of `SVC_HOME`, for machines without a credential store. */
import { join } from 'node:path';
import { findBase64url, formatBase64url } from '../../channel/base64url.ts';
import type { RandomBytes } from '../sealed-column.ts';
import { readIfThere } from './read-if-there.ts';
import type { Exclusively, SecretStore, WriteFile } from './secret-store.ts';
import { IdentityError, REPAIR } from './secret-store.ts';
import type { ScryptCost, Vault, VaultKeySource } from './vault-file.ts';
import {
  findVault,
  formatVault,
  newPassphraseSource,
  newVault,
  openBox,
  opensVault,
  SCRYPT_COST,
  sealBox,
  stretchPassphrase,
  VAULT_KEY_BYTES,
} from './vault-file.ts';

const OWNER_ONLY = 0o600;

export interface VaultOptions {
  /** `SVC_HOME`. */
  readonly home: string;
  /** `SVC_VAULT_PASSPHRASE`, where it is set. */
  readonly passphrase: string | undefined;
  readonly randomBytes: RandomBytes;
  readonly writeFile: WriteFile;
  readonly exclusively: Exclusively;
  /** Whether one may be made where none is. */
  readonly mayCreate: boolean;
  /** Of a vault that is yet to be made; one that is there has its own. */
  readonly scryptCost?: ScryptCost;
}

export function vaultPath(home: string): string {
  return join(home, 'vault.json');
}

function keyPath(home: string): string {
  return join(home, 'vault.key');
}

/**
 * Opens the vault, or makes one where there is none and one may be made: sealed with the passphrase if one is given, else
 * with a new key file. Nothing is written over a vault that does not open.
 * @throws {IdentityError}
 */
export async function openVaultStore(options: VaultOptions): Promise<SecretStore> {
  const existing = await readVault(options.home);
  if (existing === undefined && !options.mayCreate) throw missingVault(options.home);
  const { vault, vaultKey } = await (existing === undefined ? findOrMakeVault(options) : unlock(existing, options));
  let lastWrite: Promise<unknown> = Promise.resolve();
  /** One change after the other, each on what the file holds by then. */
  const change = <Result>(next: Change<Result>): Promise<Result> => {
    const changed = lastWrite.then(() => options.exclusively(() => changeVault(options, next)));
    lastWrite = changed.catch(() => undefined);
    return changed;
  };
  return {
    kind: 'vault',
    description: describe(vault.key, options),
    async get(name) {
      const { entries } = await requireVault(options.home);
      // `constructor` is a name like any other.
      const box = Object.hasOwn(entries, name) ? entries[name] : undefined;
      return box === undefined ? undefined : (openBox(vaultKey, name, box) ?? fail(damagedEntry(name)));
    },
    set: (name, secret) =>
      change((current) => {
        const box = sealBox(vaultKey, { name, secret }, options.randomBytes);
        return [{ ...current, entries: { ...current.entries, [name]: box } }, undefined];
      }),
    delete: (name) =>
      change((current) => {
        const { [name]: _, ...entries } = current.entries;
        return [{ ...current, entries }, Object.hasOwn(current.entries, name)];
      }),
  };
}

interface OpenVault {
  readonly vault: Vault;
  readonly vaultKey: Uint8Array;
}

/** Two programs may find none at the same time. */
function findOrMakeVault(options: VaultOptions): Promise<OpenVault> {
  return options.exclusively(async () => {
    const existing = await readVault(options.home);
    return existing === undefined ? makeVault(options) : unlock(existing, options);
  });
}

async function makeVault(options: VaultOptions): Promise<OpenVault> {
  const { passphrase, randomBytes, scryptCost = SCRYPT_COST } = options;
  const source: VaultKeySource =
    passphrase === undefined ? { type: 'file' } : newPassphraseSource(scryptCost, randomBytes);
  const vaultKey =
    source.type === 'file' ? await keyOfFile(options) : await stretchPassphrase(passphrase ?? '', source);
  const vault = newVault(source, vaultKey, randomBytes);
  await writeVault(options, vault);
  return { vault, vaultKey };
}

/** The key file, made where there is none: the first start may have been cut short after writing it. */
async function keyOfFile({ home, randomBytes, writeFile }: VaultOptions): Promise<Uint8Array> {
  const existing = await readKeyFile(home);
  if (existing !== undefined) return existing;
  const vaultKey = randomBytes(VAULT_KEY_BYTES);
  await writeFile(keyPath(home), `${formatBase64url(vaultKey)}\n`, OWNER_ONLY);
  return vaultKey;
}

async function unlock(vault: Vault, { home, passphrase }: VaultOptions): Promise<OpenVault> {
  if (vault.key.type === 'file') {
    const vaultKey = (await readKeyFile(home)) ?? fail(missingKeyFile(home));
    return opensVault(vault, vaultKey) ? { vault, vaultKey } : fail(damagedKeyFile(home));
  }
  if (passphrase === undefined) throw needsPassphrase(home);
  const vaultKey = await stretchPassphrase(passphrase, vault.key);
  return opensVault(vault, vaultKey) ? { vault, vaultKey } : fail(wrongPassphrase(home));
}

type Change<Result> = (vault: Vault) => readonly [Vault, Result];

async function changeVault<Result>(options: VaultOptions, next: Change<Result>): Promise<Result> {
  const [vault, result] = next(await requireVault(options.home));
  await writeVault(options, vault);
  return result;
}

async function requireVault(home: string): Promise<Vault> {
  return (await readVault(home)) ?? fail(missingVault(home));
}

async function readVault(home: string): Promise<Vault | undefined> {
  const text = await readIfThere(vaultPath(home));
  return text === undefined ? undefined : (findVault(text) ?? fail(damagedVault(home)));
}

async function writeVault({ home, writeFile }: VaultOptions, vault: Vault): Promise<void> {
  await writeFile(vaultPath(home), formatVault(vault), OWNER_ONLY);
}

async function readKeyFile(home: string): Promise<Uint8Array | undefined> {
  const text = await readIfThere(keyPath(home));
  if (text === undefined) return undefined;
  const vaultKey = findBase64url(text.trim());
  return vaultKey?.length === VAULT_KEY_BYTES ? vaultKey : fail(damagedKeyFile(home));
}

function describe(key: VaultKeySource, { home, passphrase }: VaultOptions): string {
  const path = vaultPath(home);
  if (key.type === 'passphrase') return `Secrets are in ${path}, sealed with SVC_VAULT_PASSPHRASE.`;
  const unused = passphrase === undefined ? '' : ' SVC_VAULT_PASSPHRASE is set, but the vault was made without it.';
  return `Secrets are in ${path}, and the key to it in vault.key beside it: who reads this folder reads them.${unused}`;
}

function fail(error: IdentityError): never {
  throw error;
}

const BY_HAND =
  'move vault.json, vault.key and identity.json away and bring the identity back from its 24 words with ' +
  '"postern identity restore -"';

const missingVault = (home: string) =>
  new IdentityError('missing', `${vaultPath(home)} is gone. Put it back; or ${BY_HAND}.`);
const damagedVault = (home: string) =>
  new IdentityError('corrupt', `${vaultPath(home)} is damaged. Put back a copy of it; or ${BY_HAND}.`);
const damagedEntry = (name: string) =>
  new IdentityError('corrupt', `the entry "${name}" of vault.json is damaged. ${REPAIR}`);
const missingKeyFile = (home: string) =>
  new IdentityError(
    'missing',
    `${keyPath(home)} is gone, and vault.json opens with nothing else. Put it back; or ${BY_HAND}.`,
  );
const damagedKeyFile = (home: string) =>
  new IdentityError('corrupt', `${keyPath(home)} is not the key to vault.json. Put the right one back; or ${BY_HAND}.`);
const needsPassphrase = (home: string) =>
  new IdentityError('locked', `${vaultPath(home)} is sealed with a passphrase. Give it in SVC_VAULT_PASSPHRASE.`);
const wrongPassphrase = (home: string) =>
  new IdentityError(
    'wrong_passphrase',
    `SVC_VAULT_PASSPHRASE is not the passphrase of ${vaultPath(home)}. Give the right one; if it is lost, ${BY_HAND}.`,
  );
