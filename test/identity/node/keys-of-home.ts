/** The access keys and the audit log of a folder, wired as the program wires them, with a master key that is known. */
import { randomBytes } from 'node:crypto';
import { createAuditLog, verifyAuditLog, type AuditVerdict } from '../../../core/audit/audit-log.ts';
import { auditEvents } from '../../../service/audit-events.ts';
import { openDatabase, type Database } from '../../../storage/database.ts';
import { deriveAgentKey } from '../../../identity/agent-key.ts';
import { createAuditSeal } from '../../../identity/audit-seal.ts';
import { createAccessKeyRegistry, type AccessKeyRegistry } from '../../../identity/node/access-key-registry.ts';
import { asAuditKey, asMasterKey } from '../../../identity/secret-keys.ts';

const master = asMasterKey(new Uint8Array(32).fill(7));
const seal = createAuditSeal(asAuditKey(new Uint8Array(32).fill(3)));

export interface KeysOfHome {
  readonly database: Database;
  readonly keys: AccessKeyRegistry;
  readonly verifyAudit: () => AuditVerdict;
}

export function openKeys(home: string): KeysOfHome {
  const database = openDatabase(home);
  const audit = createAuditLog({ database, events: auditEvents, seal, now: Date.now });
  const keys = createAccessKeyRegistry({
    database,
    identity: { masterKey: () => master, agentKey: (index) => deriveAgentKey(master, index) },
    now: Date.now,
    randomBytes,
    record: (event) => audit.append(event),
  });
  return { database, keys, verifyAudit: () => verifyAuditLog({ database, events: auditEvents, seal }) };
}
