/** Which store the secrets of one `SVC_HOME` are in, or are to be put in. */
import { existsSync } from 'node:fs';
import type { RandomBytes } from '../sealed-column.ts';
import type { IdentityRecord } from './identity-record.ts';
import type { KeyringState } from './keyring-store.ts';
import { createKeyringStore, lockedError, probeKeyring, storeName } from './keyring-store.ts';
import type { Exclusively, SecretStore, StoreKind, WriteFile } from './secret-store.ts';
import { IdentityError } from './secret-store.ts';
import type { ScryptCost } from './vault-file.ts';
import { openVaultStore, vaultPath } from './vault-store.ts';

export interface StoreOptions {
  /** `SVC_HOME`, resolved. It exists. */
  readonly home: string;
  /** The owner's choice; `auto` takes the credential store where there is one. */
  readonly preference: 'auto' | StoreKind;
  /** `SVC_VAULT_PASSPHRASE`, where it is set. */
  readonly passphrase: string | undefined;
  /** `keyring-probe.js`, compiled. */
  readonly probeProgram: URL;
  readonly randomBytes: RandomBytes;
  readonly writeFile: WriteFile;
  readonly exclusively: Exclusively;
  readonly scryptCost?: ScryptCost;
}

/**
 * The store that the folder's secrets are in. Where there are none yet: the one that is preferred, else the credential
 * store if it works, else the vault if there is no such store. One that is locked is waited for by nobody and gone round
 * by nobody: the owner unlocks it, or says that it should be the vault.
 * @param record of the folder, if it has one
 * @throws {IdentityError}
 */
export async function chooseStore(record: IdentityRecord | undefined, options: StoreOptions): Promise<SecretStore> {
  const kind = settledKind(record, options) ?? (await firstKind(options));
  if (kind === 'keyring') {
    if (record !== undefined) requireWorking(await probeKeyring(options.probeProgram), keyringGone);
    return createKeyringStore(options.home);
  }
  return openVaultStore({ ...options, mayCreate: record === undefined || record.secrets.length === 0 });
}

/** Where the secrets are already. A vault without a record is of a first start that was cut short. */
function settledKind(record: IdentityRecord | undefined, { home, preference }: StoreOptions): StoreKind | undefined {
  const kind = record?.store ?? (existsSync(vaultPath(home)) ? 'vault' : undefined);
  if (kind === undefined || preference === 'auto' || preference === kind) return kind;
  throw new IdentityError(
    'mismatch',
    `identity.store says "${preference}", but this folder's secrets are in the ${kind}. Set it to "${kind}" or "auto". ` +
      `To move them: write down the words of "postern identity backup", then ${BY_HAND}.`,
  );
}

async function firstKind({ preference, probeProgram }: StoreOptions): Promise<StoreKind> {
  if (preference === 'vault') return 'vault';
  const state = await probeKeyring(probeProgram);
  if (preference === 'auto' && state === 'absent') return 'vault';
  requireWorking(state, noKeyring);
  return 'keyring';
}

function requireWorking(state: KeyringState, failure: (state: Exclude<KeyringState, 'works'>) => IdentityError): void {
  if (state !== 'works') throw failure(state);
}

const BY_HAND =
  'move identity.json (and vault.json, if there is one) away and bring the identity back from its 24 words with ' +
  '"postern identity restore -". Paired devices have to be paired again after that';

const noKeyring = (state: Exclude<KeyringState, 'works'>) =>
  state === 'locked'
    ? new IdentityError(
        'locked',
        `${storeName} does not open, so nothing was put there. Unlock it and try again; or keep secrets in a file: ` +
          '"postern settings set identity.store vault".',
      )
    : new IdentityError('unavailable', `identity.store says "keyring", and ${storeName} can't be reached from here.`);

const keyringGone = (state: Exclude<KeyringState, 'works'>) =>
  state === 'locked'
    ? lockedError()
    : new IdentityError(
        'unavailable',
        `this folder's secrets are in ${storeName}, which can't be reached from here. Start Postern where it can, in ` +
          `the desktop session that made them; or ${BY_HAND}.`,
      );
