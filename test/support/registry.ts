/** A registry of access keys over a database in memory. */
import { randomBytes } from 'node:crypto';
import Sqlite from 'better-sqlite3';
import { deriveAgentKey } from '../../identity/agent-key.ts';
import { createAccessKeyRegistry, type AccessKeyRegistry } from '../../identity/node/access-key-registry.ts';
import { asMasterKey } from '../../identity/secret-keys.ts';

export function keysOfMemory(now: () => number): AccessKeyRegistry {
  const database = new Sqlite(':memory:');
  database.exec('CREATE TABLE schema_versions (module TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT');
  const master = asMasterKey(randomBytes(32));
  return createAccessKeyRegistry({
    database,
    identity: { masterKey: () => master, agentKey: (index) => deriveAgentKey(master, index) },
    now,
    randomBytes,
    record: () => undefined,
  });
}
