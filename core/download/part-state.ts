/**
 * What is known of a file that is being fetched, and the lock that lets one process at a time fetch it: a small SQLite
 * database beside the part, locked for as long as it is open. The operating system lets go of the lock however the
 * process ends; a file with a pid in it would outlive a crash.
 */
import { rmSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import * as z from 'zod';
import { isRecord } from '../json.ts';

const partStateSchema = z.strictObject({
  /** Without its query, which may hold a signature. */
  source: z.string(),
  sizeBytes: z.int().nonnegative(),
  /** 64 hexadecimal digits, where they are known beforehand. */
  sha256: z.string().optional(),
  /** A strong `ETag` of whoever holds the file. */
  etag: z.string().optional(),
});
export type PartState = Readonly<z.output<typeof partStateSchema>>;

export interface LockedState {
  /** Undefined for a part that was just begun, or by another version of the program. */
  read(): PartState | undefined;
  write(state: PartState): void;
  /** Lets go of the lock. */
  close(): void;
}

/** @returns undefined while another process holds it */
export function lockPartState(path: string): LockedState | undefined {
  try {
    return lock(path);
  } catch (error) {
    if (!isDamage(error)) throw error;
    rmSync(path, { force: true });
    return lock(path);
  }
}

function lock(path: string): LockedState | undefined {
  const database = new Sqlite(path, { timeout: 0 });
  try {
    // In this mode what the first transaction locks stays locked. No journal: a lost state costs a fresh start.
    database.pragma('journal_mode = MEMORY');
    database.pragma('locking_mode = EXCLUSIVE');
    database.exec('BEGIN EXCLUSIVE; CREATE TABLE IF NOT EXISTS state (value TEXT NOT NULL) STRICT; COMMIT');
  } catch (error) {
    database.close();
    if (isRecord(error) && error['code'] === 'SQLITE_BUSY') return undefined;
    throw error;
  }
  return {
    read: () => parse(database.prepare<[], { value: string }>('SELECT value FROM state').get()?.value),
    write: (state) => {
      database.transaction(() => {
        database.exec('DELETE FROM state');
        database.prepare('INSERT INTO state VALUES (?)').run(JSON.stringify(state));
      })();
    },
    close: () => database.close(),
  };
}

function isDamage(error: unknown): boolean {
  return isRecord(error) && (error['code'] === 'SQLITE_NOTADB' || error['code'] === 'SQLITE_CORRUPT');
}

function parse(text: string | undefined): PartState | undefined {
  if (text === undefined) return undefined;
  try {
    return partStateSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
