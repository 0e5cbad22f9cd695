/** The tables of the audit log: rows that are only ever added, and one that says where they end. */
import { migrate, type Database } from '../../storage/database.ts';
import type { AuditHead, ChainedRow } from './audit-chain.ts';

const MIGRATIONS = [
  // The triggers keep our own mistakes out; whoever can write the file can also drop them, hence the chain.
  `CREATE TABLE audit_log (
     seq INTEGER PRIMARY KEY,
     at_ms INTEGER NOT NULL,
     entry TEXT NOT NULL,
     hash BLOB NOT NULL
   ) STRICT;
   CREATE TRIGGER audit_log_rows_stay BEFORE DELETE ON audit_log BEGIN SELECT RAISE(ABORT, 'append-only'); END;
   CREATE TRIGGER audit_log_rows_hold BEFORE UPDATE ON audit_log BEGIN SELECT RAISE(ABORT, 'append-only'); END;
   CREATE TABLE audit_head (
     only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
     count INTEGER NOT NULL,
     hash BLOB NOT NULL,
     seal BLOB NOT NULL
   ) STRICT;`,
];

export interface StoredRow extends ChainedRow {
  readonly hash: Uint8Array;
}

export interface SealedHead extends AuditHead {
  readonly seal: Uint8Array;
}

/** Makes the tables where they are not yet; `begin` is called in the same transaction if so. */
export function prepareAuditTables(database: Database, begin: () => void): void {
  const prepare = database.transaction(() => {
    const isNew = !hasAuditTables(database);
    migrate(database, 'audit', MIGRATIONS);
    if (isNew) begin();
  });
  prepare.immediate();
}

export function hasAuditTables(database: Database): boolean {
  return database.prepare("SELECT 1 FROM schema_versions WHERE module = 'audit'").get() !== undefined;
}

const ROW = 'SELECT seq, at_ms AS atMs, entry, hash FROM audit_log';

export function lastRow(database: Database): StoredRow | undefined {
  return database.prepare<[], StoredRow>(`${ROW} ORDER BY seq DESC LIMIT 1`).get();
}

/** From the first to the last, without holding them all. */
export function allRows(database: Database): IterableIterator<StoredRow> {
  return database.prepare<[], StoredRow>(`${ROW} ORDER BY seq`).iterate();
}

/** The newest `limit` before `beforeSeq`, newest first. */
export function newestRows(database: Database, limit: number, beforeSeq: number): readonly StoredRow[] {
  return database
    .prepare<[number, number], StoredRow>(`${ROW} WHERE seq < ? ORDER BY seq DESC LIMIT ?`)
    .all(beforeSeq, limit);
}

export function findHead(database: Database): SealedHead | undefined {
  return database.prepare<[], SealedHead>('SELECT count, hash, seal FROM audit_head').get();
}

export function insertRow(database: Database, { seq, atMs, entry, hash }: StoredRow): void {
  database.prepare('INSERT INTO audit_log VALUES (?, ?, ?, ?)').run(seq, atMs, entry, hash);
}

export function writeHead(database: Database, { count, hash, seal }: SealedHead): void {
  database.prepare('INSERT OR REPLACE INTO audit_head VALUES (1, ?, ?, ?)').run(count, hash, seal);
}
