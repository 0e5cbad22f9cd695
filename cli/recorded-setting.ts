/** A change of a setting, with its entry in the audit log. */
import { createAuditLog } from '../core/audit/audit-log.ts';
import { writeSetting, type SettingName } from '../service/settings.ts';
import { auditEvents } from '../service/audit-events.ts';
import { openDatabase, type Database } from '../storage/database.ts';
import { createAuditSeal } from '../identity/audit-seal.ts';
import { readIdentityRecord } from '../identity/node/identity-record.ts';
import { openIdentity } from '../identity/node/open-identity.ts';
import type { CommandContext } from './command.ts';
import { existingIdentityOptions } from '../service/identity-options.ts';

/**
 * Changes a setting in the file, or takes it out with `undefined`. Where the folder has an identity, its audit log is
 * told; without one there is no key to seal the log with.
 * @throws {SettingsError} for a value that does not fit, {IdentityError} where the log can't be sealed; nothing was
 * changed then
 */
export async function changeSetting(
  context: Pick<CommandContext, 'home' | 'environment'>,
  name: SettingName,
  value: unknown,
): Promise<void> {
  const { home } = context;
  const record = await readIdentityRecord(home);
  if (record?.address === undefined) return writeSetting(home, name, value);
  const identity = await openIdentity(await existingIdentityOptions(context));
  const database = openDatabase(home);
  try {
    const log = createAuditLog({
      database,
      events: auditEvents,
      seal: createAuditSeal(identity.auditKey()),
      now: Date.now,
    });
    await inTransaction(database, async () => {
      log.append({ kind: 'setting_changed', name });
      await writeSetting(home, name, value);
    });
  } finally {
    database.close();
  }
}

/**
 * The entry goes first and the file's rename is the last thing before the commit: a write that fails takes the entry
 * with it, and of two that change settings at once one waits for the other. Only a crash between rename and commit
 * leaves a change without its entry.
 */
async function inTransaction(database: Database, change: () => Promise<void>): Promise<void> {
  database.exec('BEGIN IMMEDIATE');
  try {
    await change();
    database.exec('COMMIT');
  } catch (error) {
    if (database.inTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
