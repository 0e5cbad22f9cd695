/** How the program opens the identity of its `SVC_HOME`. */
import { randomBytes } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { writeFileAtomically } from '../core/config/atomic-file.ts';
import { changeFiles } from '../core/config/home.ts';
import { readSettings } from './settings.ts';
import type { StoreOptions } from '../identity/node/choose-store.ts';
import { packageRoot } from './package.ts';
import type { ServiceContext } from './start.ts';

type Where = Pick<ServiceContext, 'home' | 'environment'>;

export async function identityOptions(where: Where): Promise<StoreOptions> {
  const { settings } = await readSettings(where);
  return { ...(await existingIdentityOptions(where)), preference: settings['identity.store'] };
}

/**
 * For an identity that is there: it says itself where it is. No setting is asked, so that one which stands in the way
 * can be changed.
 */
export async function existingIdentityOptions({ home, environment }: Where): Promise<StoreOptions> {
  // Entries of the credential store are named for the path: for one folder always the same.
  const folder = await realpath(home).catch(() => home);
  return {
    home: folder,
    preference: 'auto',
    passphrase: environment['SVC_VAULT_PASSPHRASE'] || undefined,
    probeProgram: new URL('dist/identity/node/keyring-probe.js', packageRoot),
    randomBytes,
    writeFile: writeFileAtomically,
    exclusively: (change) => changeFiles(folder, change),
  };
}
