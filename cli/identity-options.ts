/** How the program opens the identity of its `SVC_HOME`. */
import { randomBytes } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { writeFileAtomically } from '../core/config/atomic-file.ts';
import { readSettingsFile, resolveSettings } from '../core/config/settings.ts';
import type { StoreOptions } from '../identity/node/choose-store.ts';
import type { CommandContext } from './command.ts';
import { packageRoot } from './package.ts';

export async function identityOptions({
  home,
  environment,
}: Pick<CommandContext, 'home' | 'environment'>): Promise<StoreOptions> {
  const { settings } = resolveSettings({ flags: {}, environment, file: await readSettingsFile(home) });
  return {
    // Entries of the credential store are named for the path: for one folder always the same.
    home: await realpath(home).catch(() => home),
    preference: settings['identity.store'],
    passphrase: environment['SVC_VAULT_PASSPHRASE'] || undefined,
    probeProgram: new URL('dist/identity/node/keyring-probe.js', packageRoot),
    randomBytes,
    writeFile: writeFileAtomically,
  };
}
