/**
 * The table of jobs: what was begun, for whom, how far it has come, what it has cost and how it ended. What was begun
 * survives the end of the process; who runs it is `jobs.ts`.
 */
import { migrate, type Database } from './database.ts';

export type JobState =
  | 'running'
  | 'completed'
  | 'failed'
  /** Nobody wanted it any more. */
  | 'cancelled'
  /** The service ended before it did. */
  | 'interrupted';

export interface JobRecord {
  readonly id: string;
  readonly kind: string;
  /** The partition that it belongs to. */
  readonly owner: string;
  /** Of one owner and kind, only one job with this key runs at a time. */
  readonly key: string;
  /** As are `progress` and `outcome`, JSON whose shape is the business of its kind. */
  readonly input: unknown;
  /** It goes on when nobody waits for it any more. */
  readonly isKept: boolean;
  readonly state: JobState;
  readonly progress: unknown;
  /** A result or a failure; null while it runs. */
  readonly outcome: unknown;
  readonly costMicroUsd: number;
  /** Milliseconds since 1970, as is `changedAtMs`. */
  readonly begunAtMs: number;
  readonly changedAtMs: number;
}

/** How long one that has ended can be asked for, and how many of them. */
export const JOB_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;
export const MAX_ENDED_JOBS = 500;

const MIGRATIONS = [
  `CREATE TABLE jobs (
     id TEXT PRIMARY KEY,
     kind TEXT NOT NULL,
     owner TEXT NOT NULL,
     key TEXT NOT NULL,
     input TEXT NOT NULL,
     is_kept INTEGER NOT NULL,
     state TEXT NOT NULL,
     progress TEXT NOT NULL,
     outcome TEXT NOT NULL,
     cost_micro_usd INTEGER NOT NULL,
     begun_at_ms INTEGER NOT NULL,
     changed_at_ms INTEGER NOT NULL
   ) STRICT;
   CREATE UNIQUE INDEX jobs_that_run ON jobs (kind, owner, key) WHERE state = 'running';
   CREATE INDEX jobs_by_age ON jobs (changed_at_ms);`,
];

/** Each function throws what the disk refuses. */
export interface JobTable {
  /** When this returns, the job survives the end of the process. Forgets what is over long enough. */
  begin(job: Pick<JobRecord, 'id' | 'kind' | 'owner' | 'key' | 'input' | 'isKept'>): void;
  /** Newest first. */
  list(kind: string, owner: string): readonly JobRecord[];
  /** Those that ran when the last process ended. */
  running(kind: string): readonly JobRecord[];
  progress(id: string, progress: unknown): void;
  charge(id: string, microUsd: number): void;
  keep(id: string, isKept: boolean): void;
  end(id: string, state: Exclude<JobState, 'running'>, outcome: unknown): void;
}

interface TableOptions {
  readonly database: Database;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** To be opened once a process: what runs in it was begun by the one before, and what nobody waits for is over. */
export function openJobTable({ database, now }: TableOptions): JobTable {
  migrate(database, 'jobs', MIGRATIONS);
  const statements = prepareStatements(database);
  statements.interrupt.run({ now: now() });
  const begin = database.transaction((job: Parameters<JobTable['begin']>[0]) => {
    const at = now();
    statements.forget.run({ before: at - JOB_LIFETIME_MS, keep: MAX_ENDED_JOBS });
    statements.insert.run({ ...job, input: JSON.stringify(job.input), isKept: Number(job.isKept), now: at });
  });
  return {
    begin: (job) => begin.immediate(job),
    list: (kind, owner) => statements.list.all({ kind, owner }).map(recordOf),
    running: (kind) => statements.running.all({ kind }).map(recordOf),
    progress: (id, progress) => void statements.progress.run({ id, progress: JSON.stringify(progress), now: now() }),
    charge: (id, microUsd) => void statements.charge.run({ id, microUsd, now: now() }),
    keep: (id, isKept) => void statements.keep.run({ id, isKept: Number(isKept) }),
    end: (id, state, outcome) =>
      void statements.end.run({ id, state, outcome: JSON.stringify(outcome ?? null), now: now() }),
  };
}

interface Row {
  readonly id: string;
  readonly kind: string;
  readonly owner: string;
  readonly key: string;
  readonly input: string;
  readonly is_kept: number;
  readonly state: JobState;
  readonly progress: string;
  readonly outcome: string;
  readonly cost_micro_usd: number;
  readonly begun_at_ms: number;
  readonly changed_at_ms: number;
}

function prepareStatements(database: Database) {
  return {
    insert: database.prepare<[object]>(
      `INSERT INTO jobs VALUES (@id, @kind, @owner, @key, @input, @isKept, 'running', 'null', 'null', 0, @now, @now)`,
    ),
    list: database.prepare<[object], Row>(
      'SELECT * FROM jobs WHERE kind = @kind AND owner = @owner ORDER BY begun_at_ms DESC, rowid DESC',
    ),
    running: database.prepare<[object], Row>(`SELECT * FROM jobs WHERE kind = @kind AND state = 'running'`),
    progress: database.prepare<[object]>('UPDATE jobs SET progress = @progress, changed_at_ms = @now WHERE id = @id'),
    charge: database.prepare<[object]>(
      'UPDATE jobs SET cost_micro_usd = cost_micro_usd + @microUsd, changed_at_ms = @now WHERE id = @id',
    ),
    keep: database.prepare<[object]>('UPDATE jobs SET is_kept = @isKept WHERE id = @id'),
    end: database.prepare<[object]>(
      'UPDATE jobs SET state = @state, outcome = @outcome, changed_at_ms = @now WHERE id = @id',
    ),
    interrupt: database.prepare<[object]>(
      `UPDATE jobs SET state = 'interrupted', changed_at_ms = @now WHERE state = 'running' AND is_kept = 0`,
    ),
    forget: database.prepare<[object]>(
      `DELETE FROM jobs WHERE state <> 'running' AND (changed_at_ms < @before OR id IN (
         SELECT id FROM jobs WHERE state <> 'running' ORDER BY changed_at_ms DESC LIMIT -1 OFFSET @keep))`,
    ),
  };
}

function recordOf(row: Row): JobRecord {
  const { id, kind, owner, key, state } = row;
  return {
    id,
    kind,
    owner,
    key,
    state,
    input: JSON.parse(row.input),
    isKept: row.is_kept === 1,
    progress: JSON.parse(row.progress),
    outcome: JSON.parse(row.outcome),
    costMicroUsd: row.cost_micro_usd,
    begunAtMs: row.begun_at_ms,
    changedAtMs: row.changed_at_ms,
  };
}
