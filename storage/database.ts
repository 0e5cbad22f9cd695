/**
 * `SVC_HOME/state.db`: what the service keeps, in SQLite. Each module owns its tables and brings them up to date by
 * itself, one numbered migration after the other. What a statement wrote survives `kill -9`; after a power cut the
 * last moments may be missing, never half there (WAL with `synchronous = NORMAL`).
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { assertKnownVersion, requireListed } from './schema-versions.ts';

export type Database = Sqlite.Database;

/**
 * How long a statement waits for another process (the command line, say) to finish its own. The thread waits along, and
 * with a service that runs, all its callers do; commands write for a few milliseconds.
 */
export const BUSY_TIMEOUT_MS = { ofCommand: 5000, ofService: 50 } as const;

/**
 * @throws {NewerDatabaseError} for one that a newer version of the program has written, before it is changed
 * @throws what `findDiskFault` knows, for one that can't be opened
 */
export function openDatabase(home: string): Database {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  return opened(new Sqlite(join(home, 'state.db'), { timeout: BUSY_TIMEOUT_MS.ofCommand }), (database) => {
    database.pragma('journal_mode = WAL');
    database.pragma('synchronous = NORMAL');
    database.pragma('foreign_keys = ON');
    database.exec(
      'CREATE TABLE IF NOT EXISTS schema_versions (module TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT',
    );
    assertKnownVersions(database);
  });
}

/**
 * For whoever only looks, beside a server that may run. Makes nothing that is not there and changes nothing.
 * @returns undefined where there is no database
 */
export function openDatabaseToRead(home: string): Database | undefined {
  const path = join(home, 'state.db');
  if (!existsSync(path)) return undefined;
  // Not `readonly`: a connection of that kind leaves the files of its write-ahead log behind.
  return opened(new Sqlite(path, { timeout: BUSY_TIMEOUT_MS.ofCommand, fileMustExist: true }), (database) => {
    database.pragma('query_only = ON');
    assertKnownVersions(database);
  });
}

/** What another process holds for longer is from here on refused, as `busy`. */
export function setBusyTimeout(database: Database, timeoutMs: number): void {
  database.pragma(`busy_timeout = ${timeoutMs}`);
}

/** A database that can't be used is not left open. */
function opened(database: Database, prepare: (database: Database) => void): Database {
  try {
    prepare(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function assertKnownVersions(database: Database): void {
  const rows = database.prepare<[], { module: string; version: number }>('SELECT module, version FROM schema_versions');
  for (const { module, version } of rows.all()) assertKnownVersion(module, version);
}

/** A write that means nothing, to find out whether others would work. @throws what they would throw */
export function probeWrite(database: Database): void {
  // Free for the application to use (SQLite, "PRAGMA user_version"), and used for nothing else.
  const version = Number(database.pragma('user_version', { simple: true }));
  database.pragma(`user_version = ${version === 0 ? 1 : 0}`);
}

/** The last of a module's migrations that this database has seen; 0 for none. */
export function versionOf(database: Database, module: string): number {
  const row = database
    .prepare<[string], { version: number }>('SELECT version FROM schema_versions WHERE module = ?')
    .get(module);
  return row?.version ?? 0;
}

/**
 * Runs those of a module's migrations that this database has not seen: the first makes version 1, and so on. All of
 * them or none. `schema-versions.ts` has to list the module.
 */
export function migrate(database: Database, module: string, migrations: readonly string[]): void {
  requireListed(module, migrations.length);
  const run = database.transaction(() => {
    const current = versionOf(database, module);
    if (current >= migrations.length) return;
    for (const migration of migrations.slice(current)) database.exec(migration);
    database
      .prepare(
        'INSERT INTO schema_versions VALUES (?, ?) ON CONFLICT (module) DO UPDATE SET version = excluded.version',
      )
      .run(module, migrations.length);
  });
  run.immediate();
}
