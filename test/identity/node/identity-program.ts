/**
 * What the tests of the credential store run inside a session that has one: opens or makes the identity of a folder, and
 * prints what came of it as one line of JSON. `node dist/test/identity/node/identity-program.js HOME PREFERENCE`
 */
import { createHash } from 'node:crypto';
import { createKeyringStore, probeKeyring } from '../../../identity/node/keyring-store.ts';
import { openOrCreateIdentity } from '../../../identity/node/open-identity.ts';
import { IdentityError } from '../../../identity/node/secret-store.ts';
import { storeOptions } from './home.ts';

const [home = '', preference = 'auto', ...deleted] = process.argv.slice(2);

/** A word that two runs can be compared by, and that tells nothing. */
const fingerprint = (secret: Uint8Array): string => createHash('sha256').update(secret).digest('hex').slice(0, 8);

async function report(): Promise<object> {
  const options = storeOptions(home, {
    preference: preference === 'keyring' || preference === 'vault' ? preference : 'auto',
    probeProgram: new URL('../../../identity/node/keyring-probe.js', import.meta.url),
  });
  for (const name of deleted) await createKeyringStore(home).delete(name);
  const probe = await probeKeyring(options.probeProgram);
  try {
    const identity = await openOrCreateIdentity(options);
    const secrets = [identity.masterKey(), identity.gatewayKey(), identity.columnKey(), identity.auditKey()];
    return { probe, kind: identity.store.kind, secrets: secrets.map(fingerprint), says: identity.store.description };
  } catch (error) {
    if (error instanceof IdentityError) return { probe, code: error.code, says: error.message };
    throw error;
  }
}

console.log(JSON.stringify(await report()));
