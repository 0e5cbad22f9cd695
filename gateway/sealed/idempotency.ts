/**
 * Which actions of which device were begun: a repeat of one, however late and by whomever it was held back, begins
 * nothing. Kept longer than any session takes calls, and on the disk, so that a restart forgets none.
 */
import { createHash, type Hash } from 'node:crypto';
import { equalBytes } from '../../channel/bytes.ts';
import type { CallReference, HeaderList, RequestHead } from '../../channel/head.ts';
import { asSessionId } from '../../channel/keys.ts';
import { migrate, type Database } from '../../storage/database.ts';
import { findDiskFault } from '../../storage/disk-fault.ts';
import { createUnwrittenActions, type Action, type BegunBefore } from './unwritten-actions.ts';

/** 125 minutes: a session takes calls for 120. */
export const KEPT_MS = 125 * 60_000;
const PRUNE_MS = 60_000;
/** Of one device. When they are that many, it has to wait: none is forgotten to make room. */
export const MAX_ACTIONS = 10_000;

const MIGRATIONS = [
  `CREATE TABLE sealed_actions (
     device_id TEXT NOT NULL,
     key BLOB NOT NULL,
     request_hash BLOB NOT NULL,
     session_id BLOB NOT NULL,
     call_number INTEGER NOT NULL,
     begun_at_ms INTEGER NOT NULL,
     PRIMARY KEY (device_id, key)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX sealed_actions_by_time ON sealed_actions (begun_at_ms);`,
];

export type IdempotencyResult =
  | { readonly result: 'new' }
  /** The call that began it. */
  | { readonly result: 'repeat'; readonly call: CallReference }
  /** The key was used for another request. */
  | { readonly result: 'other_request' }
  | { readonly result: 'full' };

export interface Actions {
  /**
   * Of two at once one is `new`. What it returned survives the process, but for what the disk takes no note of.
   * @throws what the disk refuses, of an action that may not be forgotten
   */
  begin(action: Action): IdempotencyResult;
  /** Of a device that was revoked. What a disk refuses to forget goes with its time. */
  forget(deviceId: string): void;
}

interface ActionsOptions {
  readonly database: Database;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Told of a disk that took no note of an action, or does not forget one. */
  readonly onDiskFault: (error: unknown) => void;
}

export function createActions(options: ActionsOptions): Actions {
  const { now, onDiskFault } = options;
  const kept = createKeptActions(options);
  const unwritten = createUnwrittenActions({ now, keptMs: KEPT_MS, maxActions: MAX_ACTIONS });
  return {
    begin(action) {
      const before = unwritten.find(action);
      if (before !== undefined) return judge(before, action);
      try {
        return kept.begin(action);
      } catch (error) {
        if (!action.mayBeForgotten || findDiskFault(error) === undefined) throw error;
        onDiskFault(error);
      }
      const written = findIfReadable(() => kept.find(action));
      if (written !== undefined) return judge(written, action);
      return unwritten.add(action) ? { result: 'new' } : { result: 'full' };
    },
    forget(deviceId) {
      unwritten.forget(deviceId);
      try {
        kept.forget(deviceId);
      } catch (error) {
        if (findDiskFault(error) === undefined) throw error;
        // A device that is no longer valid begins nothing, whatever is remembered of it.
        onDiskFault(error);
      }
    },
  };
}

interface KeptActions extends Actions {
  find(action: Action): BegunBefore | undefined;
}

/** @returns those on the disk; each function throws what the disk refuses */
function createKeptActions({ database, now }: ActionsOptions): KeptActions {
  migrate(database, 'sealed_actions', MIGRATIONS);
  const find = database.prepare<[string, Uint8Array, number], Row>(
    'SELECT * FROM sealed_actions WHERE device_id = ? AND key = ? AND begun_at_ms >= ?',
  );
  const insert = database.prepare<[string, Uint8Array, Uint8Array, Uint8Array, number, number]>(
    'INSERT OR REPLACE INTO sealed_actions VALUES (?, ?, ?, ?, ?, ?)',
  );
  const count = database.prepare<[string], number>('SELECT count(*) FROM sealed_actions WHERE device_id = ?').pluck();
  const prune = database.prepare<[number]>('DELETE FROM sealed_actions WHERE begun_at_ms < ?');
  const drop = database.prepare<[string]>('DELETE FROM sealed_actions WHERE device_id = ?');
  // Counting them takes longer the more there are, so each device's are counted once and then along.
  const counts = new Map<string, number>();
  const countOf = (deviceId: string): number => counts.get(deviceId) ?? count.get(deviceId) ?? 0;
  let prunedAtMs = -Infinity;
  const pruneNowAndThen = (): void => {
    if (Math.abs(now() - prunedAtMs) < PRUNE_MS) return;
    prunedAtMs = now();
    if (prune.run(now() - KEPT_MS).changes > 0) counts.clear();
  };
  const findBefore = ({ deviceId, key }: Action): BegunBefore | undefined => {
    const row = find.get(deviceId, key, now() - KEPT_MS);
    return row && begunBefore(row);
  };
  const begin = database.transaction((action: Action): IdempotencyResult => {
    pruneNowAndThen();
    const before = findBefore(action);
    if (before !== undefined) return judge(before, action);
    const { deviceId, key, requestHash, call } = action;
    const actions = countOf(deviceId);
    if (actions >= MAX_ACTIONS) return { result: 'full' };
    insert.run(deviceId, key, requestHash, call.sessionId, call.callNumber, now());
    counts.set(deviceId, actions + 1);
    return { result: 'new' };
  });
  return {
    find: findBefore,
    begin: (action) => begin.immediate(action),
    forget(deviceId) {
      counts.delete(deviceId);
      drop.run(deviceId);
    },
  };
}

interface Row {
  readonly request_hash: Buffer;
  readonly session_id: Buffer;
  readonly call_number: number;
}

function begunBefore({ request_hash, session_id, call_number }: Row): BegunBefore {
  const call = { sessionId: asSessionId(new Uint8Array(session_id)), callNumber: call_number };
  return { requestHash: request_hash, call };
}

function judge({ requestHash, call }: BegunBefore, action: Action): IdempotencyResult {
  return equalBytes(requestHash, action.requestHash) ? { result: 'repeat', call } : { result: 'other_request' };
}

/** A disk that takes nothing may give nothing, either. */
function findIfReadable<Value>(find: () => Value): Value | undefined {
  try {
    return find();
  } catch (error) {
    if (findDiskFault(error) === undefined) throw error;
    return undefined;
  }
}

/** Of all of a request that its handler sees; its body is added as it comes, since all of it at once takes long. */
export function startRequestHash(
  { method, path, query = '' }: Pick<RequestHead, 'method' | 'path' | 'query'>,
  headers: HeaderList,
): Hash {
  return createHash('sha256').update(JSON.stringify([method, path, query, headers]));
}
