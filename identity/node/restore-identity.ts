/** Bringing an identity back from its backup. */
import { equalBytes } from '../../channel/bytes.ts';
import { addressOf } from '../address.ts';
import { SECRET_BYTES, type MasterKey } from '../secret-keys.ts';
import { chooseStore, type StoreOptions } from './choose-store.ts';
import { readIdentityRecord, type IdentityRecord } from './identity-record.ts';
import {
  missingSecret,
  openOrCreateIdentity,
  SECRET_NAMES,
  writeRecord,
  type Identity,
  type SecretName,
} from './open-identity.ts';
import { IdentityError, type SecretStore } from './secret-store.ts';

/**
 * Puts a master key in place, from a backup. What else was secret stays where it is still there, and is made anew where
 * it is not.
 * @param mayReplace whether another identity, or one that is damaged, may go for it
 * @throws {IdentityError} `exists`, and changes nothing, where there is another and it may not
 */
export async function restoreIdentity(
  master: MasterKey,
  { mayReplace, ...options }: StoreOptions & { readonly mayReplace: boolean },
): Promise<Identity> {
  const found = await readIdentityRecord(options.home);
  const store = await chooseStore(found, options);
  const restoring: Restoring = { record: found, store, mayReplace };
  await requireNoOther(master, restoring);
  const kept = await soundSecrets(restoring);
  // Without an address until it is done: a restore that is cut short is not taken for a folder with a stranger's key.
  await writeRecord(store, { secrets: kept }, options);
  await store.set('master', master);
  return openOrCreateIdentity(options);
}

interface Restoring {
  /** Of the folder before. */
  readonly record: IdentityRecord | undefined;
  readonly store: SecretStore;
  readonly mayReplace: boolean;
}

async function requireNoOther(master: MasterKey, { record, store, mayReplace }: Restoring): Promise<void> {
  if (mayReplace) return;
  const stored = await store.get('master');
  const isOther =
    stored === undefined
      ? record?.address !== undefined && record.address !== addressOf(master)
      : !equalBytes(stored, master);
  if (!isOther) return;
  throw new IdentityError(
    'exists',
    'there is another identity here, and nothing was changed. Write down its words first ("postern identity backup"); ' +
      'then "postern identity restore - --replace" puts the other in its place.',
  );
}

/** The names of what is there whole. */
async function soundSecrets({ record, store, mayReplace }: Restoring): Promise<readonly SecretName[]> {
  const sound: SecretName[] = [];
  for (const name of SECRET_NAMES) {
    const state = await secretState(name, store);
    if (state === 'sound') sound.push(name);
    else if (mayReplace) await store.delete(name);
    else if (name !== 'master' && record?.secrets.includes(name)) throw missingSecret(name, store);
  }
  return sound;
}

async function secretState(name: SecretName, store: SecretStore): Promise<'sound' | 'damaged' | 'absent'> {
  try {
    const secret = await store.get(name);
    if (secret === undefined) return 'absent';
    return secret.length === SECRET_BYTES ? 'sound' : 'damaged';
  } catch (error) {
    // A store that does not answer says nothing about what is in it.
    if (error instanceof IdentityError && error.code === 'corrupt') return 'damaged';
    throw error;
  }
}
