/**
 * The request log: one row of `state.db` for each request that was answered, kept for some days. Rows are written
 * together, 50 ms after the first of them at the latest: a transaction costs as much as ten rows. So a crash may take
 * the rows of its last 50 ms with it, and those that wait while another process holds the database. A log that can't be written is said so and costs no request its
 * answer.
 *
 * Whoever may not come in can still make rows, so those of callers without a name are bounded on their own: they push
 * out each other, not what the owner wants to see.
 */
import { HomeError } from '../../core/config/home-error.ts';
import { migrate, openDatabaseToRead, versionOf, type Database } from '../../storage/database.ts';
import { findDiskFault } from '../../storage/disk-fault.ts';
import { setProcessTimer, type SetTimer } from '../../core/timer.ts';
import type { RequestEntry } from './request-entry.ts';
import { createRequestLogReader, type RequestLogReader } from './request-log-reader.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const DEFAULT_LIMITS: LogLimits = { maxRows: 500_000, maxStrangerRows: 20_000 };
/** Between two looks at whether strangers have more than theirs. */
const WRITES_PER_TRIM = 1000;

/** How long a row waits for others, and how many of them there may be. */
const WRITE_DELAY_MS = 50;
const MAX_PENDING_ROWS = 256;

/** While another process holds the database: between two tries, and how many rows wait for it to let go. */
const BUSY_RETRY_MS = 500;
const MAX_WAITING_ROWS = 2000;

export interface LogLimits {
  readonly maxRows: number;
  /** Of callers that are anonymous, or unknown. */
  readonly maxStrangerRows: number;
}

export interface RequestLog extends RequestLogReader {
  /** Never throws. Whoever reads the log here finds the row at once; after 50 ms it survives the end of the process. */
  write(entry: RequestEntry): void;
  /** Removes what is too old or too much; it happens by itself every hour. */
  prune(): void;
  /** Removes everything. @returns how many rows that were */
  clear(): number;
  /** Writes what is pending, and ends the hourly pruning. */
  close(): void;
}

interface LogOptions {
  readonly database: Database;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly keepDays: number;
  readonly limits?: LogLimits;
  /** Told in one line when rows begin to get lost, and not again until one could be written. */
  readonly onFailure: (message: string, error: unknown) => void;
  readonly setTimer?: SetTimer;
}

const MODULE = 'request_log';

const MIGRATIONS = [
  // Never an id twice: whoever follows the log goes by them.
  `CREATE TABLE requests (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     at_ms INTEGER NOT NULL,
     source TEXT NOT NULL,
     method TEXT NOT NULL,
     path TEXT NOT NULL,
     route TEXT,
     status INTEGER NOT NULL,
     duration_ms REAL NOT NULL,
     model TEXT,
     input_tokens INTEGER,
     cached_tokens INTEGER,
     output_tokens INTEGER,
     tokens_per_second REAL,
     time_to_first_token_ms REAL,
     generation_ms REAL,
     finish_reason TEXT,
     error_code TEXT,
     caller TEXT,
     user_agent TEXT,
     request_id TEXT NOT NULL,
     request_body TEXT,
     response_body TEXT
   ) STRICT;
   CREATE INDEX requests_by_time ON requests (at_ms);
   CREATE INDEX requests_of_strangers ON requests (id) WHERE caller IS NULL OR caller = 'anonymous';`,
  `ALTER TABLE requests ADD COLUMN requested_model TEXT;
   ALTER TABLE requests ADD COLUMN error_message TEXT;`,
];

/** All but the newest so many. */
const OLDEST = 'DELETE FROM requests WHERE id <= (SELECT id FROM requests ORDER BY id DESC LIMIT 1 OFFSET ?)';
const OLDEST_OF_STRANGERS = `DELETE FROM requests WHERE (caller IS NULL OR caller = 'anonymous') AND id <=
  (SELECT id FROM requests WHERE (caller IS NULL OR caller = 'anonymous') ORDER BY id DESC LIMIT 1 OFFSET ?)`;

/** @throws {Error} when the database can't be brought up to date */
export function createRequestLog(options: LogOptions): RequestLog {
  const { database, now, keepDays, limits = DEFAULT_LIMITS } = options;
  migrate(database, MODULE, MIGRATIONS);
  const writer = createWriter(options);
  const reader = createRequestLogReader(database);
  const prune = (): void => {
    writer.flush();
    writer.guarded(() => {
      erase(database, 'DELETE FROM requests WHERE at_ms < ?', now() - keepDays * DAY_MS);
      erase(database, OLDEST, limits.maxRows);
    });
  };
  prune();
  const hourly = setInterval(prune, HOUR_MS).unref();
  const flushed = <Log>(log: Log): Log => {
    writer.flush();
    return log;
  };
  return {
    list: (filter, page) => flushed(reader).list(filter, page),
    after: (id, filter) => flushed(reader).after(id, filter),
    stats: (filter) => flushed(reader).stats(filter),
    lastId: () => flushed(reader).lastId(),
    write: (entry) => writer.add(entry),
    prune,
    clear: () => erase(flushed(database), 'DELETE FROM requests'),
    close() {
      writer.flush();
      clearInterval(hourly);
    },
  };
}

interface Writer {
  add(entry: RequestEntry): void;
  /** Writes what is pending now. */
  flush(): void;
  /** Runs what may fail, and complains once for as long as anything does. */
  guarded(write: () => void): void;
}

function createWriter({
  database,
  limits = DEFAULT_LIMITS,
  setTimer = setProcessTimer,
  onFailure,
}: LogOptions): Writer {
  const insert = insertStatement(database);
  const insertAll = database.transaction((entries: readonly RequestEntry[]) => {
    for (const entry of entries) insert.run(rowOf(entry));
  });
  const guarded = createGuard(onFailure);
  let pending: RequestEntry[] = [];
  let cancel: (() => void) | undefined;
  let untilTrim = WRITES_PER_TRIM;
  let isHeld = false;
  const flush = (): void => {
    cancel?.();
    cancel = undefined;
    if (pending.length === 0) return;
    const entries = pending;
    pending = [];
    guarded(() => {
      isHeld = false;
      try {
        insertAll.immediate(entries);
      } catch (error) {
        isHeld = findDiskFault(error)?.fault === 'busy' && entries.length < MAX_WAITING_ROWS;
        if (!isHeld) throw error;
        pending = entries;
        cancel = setTimer(BUSY_RETRY_MS, flush);
        return;
      }
      untilTrim -= entries.length;
      if (untilTrim > 0) return;
      untilTrim = WRITES_PER_TRIM;
      erase(database, OLDEST_OF_STRANGERS, limits.maxStrangerRows);
    });
  };
  return {
    add(entry) {
      pending.push(entry);
      if (pending.length >= MAX_PENDING_ROWS && !isHeld) flush();
      else cancel ??= setTimer(WRITE_DELAY_MS, flush);
    },
    flush,
    guarded,
  };
}

interface OpenLog {
  readonly reader: RequestLogReader;
  close(): void;
}

/**
 * The log of a home, whether or not a server runs there; nothing is made that is not there.
 * @returns undefined where nothing was ever logged
 * @throws {HomeError} when the database was written by another version of the program
 */
export function openRequestLog(home: string): OpenLog | undefined {
  const database = openDatabaseToRead(home);
  if (database === undefined) return undefined;
  const version = versionOf(database, MODULE);
  if (version === MIGRATIONS.length) return { reader: createRequestLogReader(database), close: () => database.close() };
  database.close();
  if (version === 0) return undefined;
  throw new HomeError(
    `state.db was written by another version of Postern (${MODULE} ${version}). Use the one that serves there.`,
  );
}

/** Runs what may fail, and complains once for as long as it does. */
function createGuard(onFailure: LogOptions['onFailure']): (write: () => void) => void {
  let isFailing = false;
  return (write) => {
    try {
      write();
      isFailing = false;
    } catch (error) {
      if (!isFailing)
        onFailure(`The request log can't be written (${codeOf(error)}); requests are answered without.`, error);
      isFailing = true;
    }
  };
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return 'code' in error ? String(error.code) : error.name;
}

/** Removes rows from the files, too: what is only marked as free can still be read there. @returns how many */
function erase(database: Database, statement: string, ...parameters: number[]): number {
  database.pragma('secure_delete = ON');
  const { changes } = database.prepare<number[]>(statement).run(...parameters);
  database.pragma('secure_delete = OFF');
  if (changes > 0) database.pragma('wal_checkpoint(TRUNCATE)');
  return changes;
}

/** Its columns, and what of an entry each holds. */
const COLUMNS: Readonly<Record<string, (entry: RequestEntry) => string | number | undefined>> = {
  at_ms: ({ startedAtMs }) => startedAtMs,
  source: ({ source }) => source,
  method: ({ method }) => method,
  path: ({ path }) => path,
  route: ({ route }) => route,
  status: ({ status }) => status,
  duration_ms: ({ durationMs }) => durationMs,
  model: ({ inference }) => inference.model,
  requested_model: ({ inference }) => inference.requestedModel,
  input_tokens: ({ inference }) => inference.inputTokens,
  cached_tokens: ({ inference }) => inference.cachedTokens,
  output_tokens: ({ inference }) => inference.outputTokens,
  tokens_per_second: ({ inference }) => inference.tokensPerSecond,
  time_to_first_token_ms: ({ inference }) => inference.firstTokenMs,
  generation_ms: ({ inference }) => inference.generationMs,
  finish_reason: ({ inference }) => inference.finishReason,
  error_code: ({ errorCode }) => errorCode,
  error_message: ({ errorMessage }) => errorMessage,
  caller: ({ caller }) => caller,
  user_agent: ({ userAgent }) => userAgent,
  request_id: ({ requestId }) => requestId,
  request_body: ({ requestBody }) => requestBody,
  response_body: ({ responseBody }) => responseBody,
};
const COLUMN_VALUES = Object.values(COLUMNS);

type Row = readonly (string | number | null)[];

/** By position: twenty names would be looked up for each row. */
function insertStatement(database: Database) {
  const names = Object.keys(COLUMNS);
  return database.prepare<[Row]>(
    `INSERT INTO requests (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
  );
}

/** Three digits after the point: microseconds, and thousandths of a token. */
function rowOf(entry: RequestEntry): Row {
  return COLUMN_VALUES.map((valueOf) => {
    const value = valueOf(entry);
    return typeof value === 'number' ? Math.round(value * 1000) / 1000 : (value ?? null);
  });
}
