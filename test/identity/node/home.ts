/** A home of its own for each test, and what opens an identity in it. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeFileAtomically } from '../../../core/config/atomic-file.ts';
import { changeFiles } from '../../../core/config/home.ts';
import type { StoreOptions } from '../../../identity/node/choose-store.ts';

/** As weak as scrypt gets: what is tested here is what becomes of the key, not how long a guess takes. */
export const WEAK = { n: 2, r: 1, p: 1 } as const;

/** As `npm test` built it. */
export const probeProgram = new URL('../../../dist/identity/node/keyring-probe.js', import.meta.url);

export function temporaryHome(): { readonly home: string; readonly remove: () => void } {
  const home = mkdtempSync(join(tmpdir(), 'postern-identity-'));
  return { home, remove: () => rmSync(home, { recursive: true, force: true }) };
}

export function storeOptions(home: string, more: Partial<StoreOptions> = {}): StoreOptions {
  return {
    home,
    preference: 'vault',
    passphrase: undefined,
    probeProgram,
    randomBytes,
    writeFile: writeFileAtomically,
    exclusively: (change) => changeFiles(home, change),
    scryptCost: WEAK,
    ...more,
  };
}
