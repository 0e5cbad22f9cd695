/** Where the secrets of this home are, or would be put, and whether that can be reached. */
import { readIdentityRecord } from '../../../identity/node/identity-record.ts';
import { probeKeyring, storeName } from '../../../identity/node/keyring-store.ts';
import { packageRoot } from '../../../service/package.ts';
import type { Check, Finding } from './check.ts';

const PROBE = new URL('dist/identity/node/keyring-probe.js', packageRoot);
const VAULT: Finding = { state: 'ok', message: 'in the vault file of this home' };

export const secrets: Check = {
  name: 'secrets',
  async run({ home, settings }) {
    const store = (await readIdentityRecord(home))?.store ?? settings['identity.store'];
    if (store === 'vault') return VAULT;
    const state = await probeKeyring(PROBE);
    if (state === 'works') return { state: 'ok', message: `in ${storeName}` };
    if (state === 'absent' && store === 'auto')
      return { ...VAULT, message: `${VAULT.message}: no credential store is here` };
    return {
      state: 'failed',
      message: `${storeName} ${state === 'absent' ? 'cannot be reached' : 'is locked'}`,
      remedy: 'Unlock it, or log in to the desktop that it belongs to.',
    };
  },
};
