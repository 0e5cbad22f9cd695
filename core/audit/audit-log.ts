/**
 * The audit log: what was decided here about who may do what. Entries are only added, each in the transaction of what it
 * tells, so that neither is there without the other.
 *
 * What it can't show: that the whole database was replaced by an older copy of itself, or deleted.
 */
import type { Database } from '../../storage/database.ts';
import { EMPTY_HEAD, hashOfRow, isSame, isSealOfHead, sealOfHead, type AuditHead, type Seal } from './audit-chain.ts';
import {
  createAuditEntryCodec,
  type AuditEntry,
  type AuditEntryCodec,
  type AuditEntryOf,
  type AuditEvents,
} from './audit-entry.ts';
import {
  allRows,
  findHead,
  hasAuditTables,
  insertRow,
  lastRow,
  newestRows,
  prepareAuditTables,
  writeHead,
  type StoredRow,
} from './audit-table.ts';

/** Written by the log itself: what stood before this entry was not what it had sealed. */
export const auditLogEvents = { damage_found: {} } as const;

export interface AuditLog<Entry> {
  /**
   * Adds an entry: in the caller's transaction where there is one, which should be an immediate one, else in its own.
   * A log that was tampered with is added to all the same, after an entry that says so: its damage is no reason not to
   * revoke a key.
   */
  readonly append: (entry: Entry) => void;
}

export interface AuditRecord {
  readonly seq: number;
  readonly atMs: number;
  /** `undefined` for a row that is not what this program writes. */
  readonly entry: AuditEntry | undefined;
}

export type AuditVerdict =
  | { readonly intact: true; readonly count: number }
  | {
      readonly intact: false;
      /** The first row at which it shows. */
      readonly seq: number;
      readonly fault: AuditFault;
    };

export type AuditFault =
  /** The row is not what was written, or not where. */
  | 'changed'
  /** The row is not there. */
  | 'missing'
  /** The row was not written by this program, or the seal over the log's end is not its own. */
  | 'unsealed'
  /** The row says that the log was found damaged when it was written. */
  | 'damage_found';

interface LogOptions<Events> {
  readonly database: Database;
  /** The closed list of what can be told. */
  readonly events: Events;
  readonly seal: Seal;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export function createAuditLog<Events extends AuditEvents & typeof auditLogEvents>(
  options: LogOptions<Events>,
): AuditLog<AuditEntryOf<Events>>;
export function createAuditLog({ database, events, seal, now }: LogOptions<AuditEvents>): AuditLog<AuditEntry> {
  const codec = createAuditEntryCodec(events);
  const moveHead = (head: AuditHead): void => writeHead(database, { ...head, seal: sealOfHead(head, seal) });
  prepareAuditTables(database, () => moveHead(EMPTY_HEAD));
  const add = (head: AuditHead, entry: AuditEntry): AuditHead => {
    const row = { seq: head.count + 1, atMs: now(), entry: codec.encode(entry) };
    const hash = hashOfRow(head.hash, row);
    insertRow(database, { ...row, hash });
    return { count: row.seq, hash };
  };
  const append = database.transaction((entry: AuditEntry) => {
    const { head, isIntact } = headToGoOnFrom(database, seal);
    moveHead(add(isIntact ? head : add(head, { kind: 'damage_found' }), entry));
  });
  return { append: (entry) => append.immediate(entry) };
}

/** Where the next row goes. Without a sound head it goes after whatever rows there are. */
function headToGoOnFrom(database: Database, seal: Seal): { readonly head: AuditHead; readonly isIntact: boolean } {
  const head = findHead(database);
  const last = lastRow(database);
  const isSealed = head !== undefined && isSealOfHead(head.seal, head, seal);
  if (isSealed && head.count === (last?.seq ?? 0)) return { head, isIntact: true };
  if (isSealed && head.count > (last?.seq ?? 0)) return { head, isIntact: false };
  return { head: last === undefined ? EMPTY_HEAD : { count: last.seq, hash: last.hash }, isIntact: false };
}

/** The newest `limit` before `beforeSeq`, newest first. Needs no key, and proves nothing. */
export function listAuditRecords(
  { database, events }: Pick<LogOptions<AuditEvents>, 'database' | 'events'>,
  { limit, beforeSeq = Number.MAX_SAFE_INTEGER }: { readonly limit: number; readonly beforeSeq?: number },
): readonly AuditRecord[] {
  if (!hasAuditTables(database)) return [];
  const rows = newestRows(database, limit, beforeSeq);
  const codec = createAuditEntryCodec(events);
  return rows.map(({ seq, atMs, entry }) => ({ seq, atMs, entry: codec.find(entry) }));
}

/** Reads the log from its beginning, as it is at this moment, and says whether anything is wrong with it. */
export function verifyAuditLog({ database, events, seal }: Omit<LogOptions<AuditEvents>, 'now'>): AuditVerdict {
  const codec = createAuditEntryCodec(events);
  const verify = database.transaction((): AuditVerdict => {
    if (!hasAuditTables(database)) return { intact: true, count: 0 };
    const rows = checkRows(allRows(database), codec);
    return rows.fault ?? checkHead(database, rows.head, seal);
  });
  return verify.deferred();
}

interface CheckedRows {
  readonly head: AuditHead;
  readonly fault?: AuditVerdict;
}

function checkRows(rows: Iterable<StoredRow>, codec: AuditEntryCodec): CheckedRows {
  let head = EMPTY_HEAD;
  for (const row of rows) {
    const seq = head.count + 1;
    const fault = faultOf(row, head, codec);
    if (fault !== undefined) return { head, fault: { intact: false, seq, fault } };
    head = { count: seq, hash: row.hash };
  }
  return { head };
}

function faultOf(row: StoredRow, previous: AuditHead, codec: AuditEntryCodec): AuditFault | undefined {
  if (row.seq !== previous.count + 1) return 'missing';
  if (!isSame(row.hash, hashOfRow(previous.hash, row))) return 'changed';
  const entry = codec.find(row.entry);
  if (entry === undefined) return 'unsealed';
  return entry.kind === 'damage_found' ? 'damage_found' : undefined;
}

function checkHead(database: Database, rows: AuditHead, seal: Seal): AuditVerdict {
  const head = findHead(database);
  if (head === undefined || !isSealOfHead(head.seal, head, seal)) {
    return { intact: false, seq: Math.max(rows.count, 1), fault: 'unsealed' };
  }
  if (head.count > rows.count) return { intact: false, seq: rows.count + 1, fault: 'missing' };
  if (head.count < rows.count) return { intact: false, seq: head.count + 1, fault: 'unsealed' };
  if (!isSame(head.hash, rows.hash)) return { intact: false, seq: rows.count, fault: 'changed' };
  return { intact: true, count: rows.count };
}
