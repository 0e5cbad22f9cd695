/**
 * `SVC_HOME`: the one folder that holds everything Postern keeps, and the rule that one server at a time works in it.
 */
import { mkdirSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'better-sqlite3';
import * as z from 'zod';
import { isRecord } from '../json.ts';
import { writeFileAtomically } from './atomic-file.ts';
import { parseBoundedJson } from '../json/json-reader.ts';

export function homeFolder(environment: Readonly<Record<string, string | undefined>>): string {
  return resolve(environment['SVC_HOME'] || join(homedir(), '.service'));
}

/** How the command line finds the live server. */
export interface RunFile {
  readonly pid: number;
  readonly host: string;
  readonly port: number;
  /** Proves ownership to this run of the server; a secret. */
  readonly token: string;
  readonly startedAtMs: number;
}

const runFileSchema = z.strictObject({
  pid: z.int().positive(),
  host: z.string(),
  port: z.int().min(1).max(65_535),
  token: z.string().min(1),
  startedAtMs: z.int(),
});

function runFilePath(home: string): string {
  return join(home, 'run.json');
}

export async function writeRunFile(home: string, run: RunFile): Promise<void> {
  await writeFileAtomically(runFilePath(home), `${JSON.stringify(run)}\n`, 0o600);
}

export async function removeRunFile(home: string): Promise<void> {
  await rm(runFilePath(home), { force: true });
}

/** What the last server wrote; it may be gone since. Undefined where there is no such file, or not a whole one. */
export async function readRunFile(home: string): Promise<RunFile | undefined> {
  const text = await readFile(runFilePath(home), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return runFileSchema.parse(parseBoundedJson(text));
  } catch {
    return undefined;
  }
}

/** Held for as long as the process lives: the operating system lets go of it however that ends, `kill -9` included. */
export interface HomeLock {
  release(): void;
}

/**
 * Says that a server works in this folder.
 * @returns undefined while another process holds it
 */
export function lockHome(home: string): HomeLock | undefined {
  return lockFile(home, 'run.lock');
}

/**
 * Node can't lock a file, SQLite can: an exclusive transaction on a database that holds nothing. A file with a pid in
 * it would outlive a crash, and the pid could be another program's by then.
 */
function lockFile(home: string, name: string): HomeLock | undefined {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const database = new Database(join(home, name), { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
    return { release: () => database.close() };
  } catch (error) {
    database.close();
    if (isRecord(error) && error['code'] === 'SQLITE_BUSY') return undefined;
    throw error;
  }
}

/** For each turn, and for how often: a change of a small file takes milliseconds. */
const TURN_MS = 10;
const MAX_TURNS = 1000;

/**
 * Runs a change of the folder's files while no other process runs one. Not to be nested: it would wait for itself.
 * @throws {Error} where the others take more than ten seconds
 */
export async function changeFiles<Result>(home: string, change: () => Promise<Result>): Promise<Result> {
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const lock = lockFile(home, 'change.lock');
    if (lock === undefined) {
      await pause(TURN_MS);
      continue;
    }
    try {
      return await change();
    } finally {
      lock.release();
    }
  }
  throw new Error(`another program is changing the files of ${home}, and does not come to an end`);
}
