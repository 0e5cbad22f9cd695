/** `postern audit`: reads the audit log, and checks that it is intact. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  listAuditRecords,
  verifyAuditLog,
  type AuditFault,
  type AuditRecord,
  type AuditVerdict,
} from '../../core/audit/audit-log.ts';
import { auditEvents } from '../../service/audit-events.ts';
import { printable } from '../../core/printable.ts';
import { openDatabase, type Database } from '../../storage/database.ts';
import { createAuditSeal } from '../../identity/audit-seal.ts';
import { openIdentity } from '../../identity/node/open-identity.ts';
import { noun, refuseMore } from '../actions.ts';
import { UsageError, type Command, type CommandContext, type CommandInput, type ExitCode } from '../command.ts';
import { identityOptions } from '../../service/identity-options.ts';

const DEFAULT_LIMIT = 50;

export const audit: Command = noun({
  name: 'audit',
  summary: 'show what became of keys and devices, and check that record',
  usage: `Usage: postern audit [list] [--limit N] [--json]
       postern audit verify [--json]

  list      the newest entries, newest first
  verify    reads the whole log and tells whether anything in it was changed; exit code 0 when it is intact, 1 when not

  --limit N   how many entries (default ${DEFAULT_LIMIT})
  --json      JSON on stdout

Example:
  postern audit list --limit 10
`,
  options: { json: { type: 'boolean' }, limit: { type: 'string' } },
  actions: { list: { options: ['limit', 'json'], run: list }, verify: { options: ['json'], run: verify } },
  usual: 'list',
});

function limitOf(flag: CommandInput['flags'][string]): number {
  if (flag === undefined) return DEFAULT_LIMIT;
  const text = typeof flag === 'string' ? flag : '';
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError(`--limit: "${text}" is not a number of entries.`);
}

async function list({ flags, positionals }: CommandInput, { terminal, home }: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  const limit = limitOf(flags['limit']);
  const records =
    withDatabase(home, (database) => listAuditRecords({ database, events: auditEvents }, { limit })) ?? [];
  if (flags['json'] === true)
    terminal.print(JSON.stringify(records.map(({ seq, atMs, entry }) => ({ seq, at_ms: atMs, ...entry }))));
  else if (records.length === 0) terminal.say('The audit log has no entries yet.');
  else for (const record of records) terminal.print(lineOf(record));
  return 0;
}

function lineOf({ seq, atMs, entry }: AuditRecord): string {
  const { kind, ...fields } = entry ?? { kind: 'not an entry of this log' };
  const told = Object.entries(fields).map(([name, value]) => `${name}=${printable(JSON.stringify(value))}`);
  return [String(seq).padStart(6), timeText(atMs), kind, ...told].join('  ');
}

/** A row that was tampered with may hold any number. */
function timeText(atMs: number): string {
  const time = new Date(atMs);
  return Number.isNaN(time.getTime()) ? 'no time' : time.toISOString();
}

async function verify({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  const { terminal, home } = context;
  const opened = await openIdentity(await identityOptions(context));
  const seal = createAuditSeal(opened.auditKey());
  const nothing: AuditVerdict = { intact: true, count: 0 };
  const verdict = withDatabase(home, (database) => verifyAuditLog({ database, events: auditEvents, seal })) ?? nothing;
  if (flags['json'] === true) terminal.print(JSON.stringify(verdict));
  else if (verdict.intact)
    terminal.print(`The audit log is intact (${verdict.count} ${verdict.count === 1 ? 'entry' : 'entries'}).`);
  else terminal.print(`The audit log is damaged at entry ${verdict.seq}: ${FAULTS[verdict.fault]}`);
  return verdict.intact ? 0 : 1;
}

const FAULTS: Readonly<Record<AuditFault, string>> = {
  changed: 'it is not what was written there.',
  missing: 'it is missing.',
  unsealed: 'what is there was not written by this service, or the seal over the end of the log is not its own.',
  damage_found: 'when it was written, the log before it was found damaged or sealed with another key.',
};

/** @returns undefined where there is no database; looking makes none */
function withDatabase<Result>(home: string, read: (database: Database) => Result): Result | undefined {
  if (!existsSync(join(home, 'state.db'))) return undefined;
  const database = openDatabase(home);
  try {
    return read(database);
  } finally {
    database.close();
  }
}
