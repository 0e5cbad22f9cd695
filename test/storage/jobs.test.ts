import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openDatabase, type Database } from '../../storage/database.ts';
import { createEventHub } from '../../storage/event-hub.ts';
import { JOB_LIFETIME_MS, MAX_ENDED_JOBS, openJobTable, type JobTable } from '../../storage/job-table.ts';
import { createJobs, type JobContext, type JobEvent, type JobKind, type Jobs } from '../../storage/jobs.ts';
import { until } from '../support/wait.ts';

type Event = JobEvent<number, string>;
type TestJobs = Jobs<string, number, string>;

/** One call of `run`, which the test ends. */
interface Run extends JobContext<number> {
  readonly input: string;
  readonly finish: (result: string) => void;
  readonly fail: (error: Error) => void;
}

let home: string;
let database: Database;
let nowMs: number;
let runs: Run[];
let errors: unknown[];
let late: (() => void)[];
let ids: number;
let stopping: AbortController;
const open: TestJobs[] = [];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'postern-jobs-'));
  database = openDatabase(home);
  nowMs = 1_700_000_000_000;
  ids = 0;
  stopping = new AbortController();
  [runs, errors, late] = [[], [], []];
});
afterEach(async () => {
  for (const jobs of open.splice(0)) await jobs.close();
  database.close();
  rmSync(home, { recursive: true, force: true });
});

function kindOf(more: Partial<JobKind<string, number, string>> = {}): JobKind<string, number, string> {
  return {
    name: 'count',
    maxRunning: 3,
    afterRestart: 'resume',
    encodeInput: (input) => ({ input }),
    parseInput: (stored) => (stored as { input: string }).input,
    stepOf: (progress) => `step ${Math.floor(progress)}`,
    run: (input, context) =>
      new Promise((resolve, reject) => {
        runs.push({ ...context, input, finish: resolve, fail: reject });
        context.signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true });
      }),
    describeFailure: (error) => ({ code: 'broken', message: (error as Error).message }),
    ...more,
  };
}

/** As one process after the other opens them. */
function openJobs(more: Partial<JobKind<string, number, string>> = {}): {
  readonly jobs: TestJobs;
  readonly table: JobTable;
} {
  const table = openJobTable({ database, now: () => nowMs });
  const jobs = createJobs(kindOf(more), {
    table,
    hub: createEventHub('run'),
    newId: () => `job${++ids}`,
    stopping: stopping.signal,
    elapsed: () => nowMs,
    writeInTime(write) {
      try {
        write();
      } catch (error) {
        errors.push(error);
        late.push(write);
      }
    },
    onError: (error) => void errors.push(error),
  });
  open.push(jobs);
  return { jobs, table };
}

interface Waiting {
  readonly id: string;
  readonly events: Event[];
  readonly ended: Promise<void>;
  readonly leave: () => void;
}
async function wait(jobs: TestJobs, { key = 'a', isKept = false, owner = 'owner' } = {}): Promise<Waiting> {
  const leaving = new AbortController();
  const job = (await jobs.join({ owner, key, input: `of ${key}`, isKept, signal: leaving.signal }))!;
  const events: Event[] = [];
  const ended = (async () => {
    for await (const event of job.events) events.push(event);
  })();
  return { id: job.id, events, ended, leave: () => leaving.abort() };
}
const statesOf = (jobs: TestJobs, owner = 'owner') => jobs.list(owner).map(({ id, state }) => [id, state]);
const endOf = ({ events }: Waiting) => events.flatMap((event) => (event.type === 'ended' ? [event.end] : []));
/** The disk takes nothing any more. */
const fill = (): unknown =>
  database.exec(`CREATE TRIGGER full BEFORE UPDATE ON jobs BEGIN SELECT RAISE(ABORT, 'full'); END`);
const empty = (): unknown => database.exec('DROP TRIGGER full');

describe('a job', () => {
  test('tells who waits how far it is and how it ends, and is kept with its result', async () => {
    const { jobs } = openJobs();
    const waiting = await wait(jobs);
    expect(statesOf(jobs)).toEqual([['job1', 'running']]);
    runs[0]!.report(1);
    runs[0]!.report(2);
    runs[0]!.finish('done');
    await waiting.ended;
    expect(waiting.events).toEqual([
      { type: 'progress', progress: 1 },
      { type: 'progress', progress: 2 },
      { type: 'ended', end: { state: 'completed', result: 'done' } },
    ]);
    expect(jobs.list('owner')).toEqual([
      {
        ...{ id: 'job1', kind: 'count', owner: 'owner', key: 'a', isKept: false },
        ...{ input: { input: 'of a' }, state: 'completed', outcome: 'done', progress: null },
        ...{ costMicroUsd: 0, begunAtMs: nowMs, changedAtMs: nowMs },
      },
    ]);
  });

  test('that fails is kept with the reason', async () => {
    const { jobs } = openJobs();
    const waiting = await wait(jobs);
    runs[0]!.fail(new Error('no such thing'));
    await waiting.ended;
    const failure = { code: 'broken', message: 'no such thing' };
    expect(endOf(waiting)).toEqual([{ state: 'failed', failure }]);
    expect(jobs.list('owner')).toMatchObject([{ state: 'failed', outcome: failure }]);
  });

  test('is one for all who ask for the same, and tells each from the beginning', async () => {
    const { jobs } = openJobs();
    const first = await wait(jobs);
    runs[0]!.report(1);
    const second = await wait(jobs);
    const other = await wait(jobs, { key: 'b' });
    const foreign = await wait(jobs, { owner: 'somebody else' });
    expect([second.id === first.id, runs.map(({ input }) => input)]).toEqual([true, ['of a', 'of b', 'of a']]);
    for (const run of runs) run.finish('x');
    await Promise.all([first, second, other, foreign].map(({ ended }) => ended));
    expect(second.events).toEqual(first.events);
    expect(statesOf(jobs, 'somebody else')).toHaveLength(1);
  });

  test('asked for again when it is over is a new one', async () => {
    const { jobs } = openJobs();
    const first = await wait(jobs);
    runs[0]!.finish('x');
    await first.ended;
    expect((await wait(jobs)).id).toBe('job2');
  });

  test('is cancelled when the last of those who wait has left, and not before', async () => {
    const { jobs } = openJobs();
    const [first, second] = [await wait(jobs), await wait(jobs)];
    first.leave();
    await first.ended;
    expect(runs[0]!.signal.aborted).toBe(false);
    second.leave();
    await until(() => statesOf(jobs)[0]![1] === 'cancelled');
    expect(runs[0]!.signal.aborted).toBe(true);
  });

  test('that is just being cancelled is waited for, and begun anew', async () => {
    const { jobs } = openJobs();
    (await wait(jobs)).leave();
    const again = await wait(jobs);
    expect([again.id, statesOf(jobs)]).toEqual([
      'job2',
      [
        ['job2', 'running'],
        ['job1', 'cancelled'],
      ],
    ]);
  });

  test('that is to be kept goes on without anybody, until it is released', async () => {
    const { jobs } = openJobs();
    const first = await wait(jobs);
    const keeper = await wait(jobs, { isKept: true });
    for (const { leave } of [first, keeper]) leave();
    await Promise.all([first.ended, keeper.ended]);
    expect(runs[0]!.signal.aborted).toBe(false);
    expect(await jobs.release('somebody else', 'job1')).toBeUndefined();
    expect(await jobs.release('owner', 'job1')).toBe('ended');
    expect(statesOf(jobs)).toEqual([['job1', 'cancelled']]);
    expect(await jobs.release('owner', 'job1')).toBeUndefined();
  });

  test('that was released goes on for others, and ends with them', async () => {
    const { jobs } = openJobs();
    const waiting = await wait(jobs, { isKept: true });
    expect(await jobs.release('owner', 'job1')).toBe('running');
    expect(runs[0]!.signal.aborted).toBe(false);
    waiting.leave();
    await until(() => statesOf(jobs)[0]![1] === 'cancelled');
  });

  test('remembers what it has cost, also of what failed', async () => {
    const { jobs } = openJobs();
    const waiting = await wait(jobs);
    runs[0]!.charge(1500);
    runs[0]!.charge(500);
    runs[0]!.fail(new Error('after all'));
    await waiting.ended;
    expect(jobs.list('owner')).toMatchObject([{ costMicroUsd: 2000, state: 'failed' }]);
  });

  test('writes its progress once a second', async () => {
    const { jobs, table } = openJobs();
    await wait(jobs);
    const stored = () => table.list('count', 'owner')[0]!.progress;
    runs[0]!.report(0.1);
    expect([stored(), jobs.list('owner')[0]!.progress]).toEqual([null, 0.1]);
    nowMs += 1000;
    runs[0]!.report(0.2);
    runs[0]!.report(0.3);
    expect(stored()).toBe(0.2);
  });
});

describe('how many', () => {
  test('run at once is bounded; who joins one needs no room', async () => {
    const { jobs } = openJobs({ maxRunning: 2 });
    await wait(jobs);
    await wait(jobs, { key: 'b' });
    const { signal } = new AbortController();
    expect(await jobs.join({ owner: 'owner', key: 'c', input: '', isKept: false, signal })).toBeUndefined();
    expect((await wait(jobs, { key: 'b' })).id).toBe('job2');
    expect(statesOf(jobs)).toHaveLength(2);
  });

  test('are remembered is bounded, by number and by time; those that run are not forgotten', async () => {
    const { jobs, table } = openJobs();
    await wait(jobs, { key: 'runs' });
    for (let number = 1; number <= MAX_ENDED_JOBS + 10; number += 1) {
      table.begin({ id: `old${number}`, kind: 'count', owner: 'owner', key: 'old', input: null, isKept: false });
      nowMs += 1;
      table.end(`old${number}`, 'completed', null);
    }
    await wait(jobs, { key: 'next' });
    expect(statesOf(jobs)).toHaveLength(MAX_ENDED_JOBS + 2);
    nowMs += JOB_LIFETIME_MS + 1;
    await wait(jobs, { key: 'much later' });
    expect(statesOf(jobs).map(([, state]) => state)).toEqual(['running', 'running', 'running']);
  });
});

describe('after the process ended', () => {
  /** As `kill -9` would leave it. */
  const restart = (more: Partial<JobKind<string, number, string>> = {}) => {
    open.splice(0);
    stopping = new AbortController();
    const opened = openJobs(more);
    opened.jobs.resume();
    return opened;
  };

  test('what was to be kept is begun again, under its id, and can be joined', async () => {
    await wait(openJobs().jobs, { isKept: true });
    const { jobs } = restart();
    expect(runs.map(({ input }) => input)).toEqual(['of a', 'of a']);
    const waiting = await wait(jobs);
    runs[1]!.finish('at last');
    await waiting.ended;
    expect(jobs.list('owner')).toMatchObject([{ id: 'job1', state: 'completed', outcome: 'at last' }]);
  });

  test.each<[string, { isKept: boolean }, Partial<JobKind<string, number, string>>]>([
    ['what nobody waits for any more', { isKept: false }, {}],
    ['what is not of a kind to be resumed', { isKept: true }, { afterRestart: 'interrupt' }],
    [
      'what this version can’t read',
      { isKept: true },
      {
        parseInput: () => {
          throw new Error('of another version');
        },
      },
    ],
  ])('%s is interrupted', async (_what, params, kind) => {
    await wait(openJobs().jobs, params);
    const { jobs } = restart(kind);
    expect([runs.length, statesOf(jobs)]).toEqual([1, [['job1', 'interrupted']]]);
    expect((await wait(jobs)).id).toBe('job2');
  });

  test('and who waited was gone before, what they waited for was not cancelled', async () => {
    const { jobs } = openJobs();
    const waiting = await wait(jobs);
    stopping.abort();
    waiting.leave();
    await until(() => statesOf(jobs)[0]![1] !== 'running');
    expect(statesOf(jobs)).toEqual([['job1', 'interrupted']]);
  });

  test('in good order the same holds, and who waits is told nothing false', async () => {
    const before = openJobs().jobs;
    const kept = await wait(before, { isKept: true });
    const waiting = await wait(before, { key: 'b' });
    await before.close();
    await Promise.all([kept.ended, waiting.ended]);
    expect([endOf(kept), endOf(waiting)]).toEqual([[{ state: 'interrupted' }], [{ state: 'interrupted' }]]);
    const { signal } = new AbortController();
    expect(await before.join({ owner: 'owner', key: 'c', input: '', isKept: false, signal })).toBeUndefined();
    const { jobs } = restart();
    expect(statesOf(jobs)).toEqual([
      ['job2', 'interrupted'],
      ['job1', 'running'],
    ]);
  });
});

describe('a disk that takes nothing', () => {
  test('begins no job', async () => {
    const { jobs } = openJobs();
    database.exec(`CREATE TRIGGER full BEFORE INSERT ON jobs BEGIN SELECT RAISE(ABORT, 'full'); END`);
    await expect(wait(jobs)).rejects.toThrow('full');
    expect([runs, statesOf(jobs)]).toEqual([[], []]);
  });

  test('keeps none from ending, and is told of its end when it has room', async () => {
    const { jobs } = openJobs();
    const waiting = await wait(jobs);
    fill();
    nowMs += 1000;
    runs[0]!.report(1);
    expect(() => runs[0]!.charge(1)).toThrow('full');
    runs[0]!.finish('done');
    await waiting.ended;
    expect(endOf(waiting)).toEqual([{ state: 'completed', result: 'done' }]);
    expect(errors).toHaveLength(2);
    empty();
    for (const write of late) write();
    expect(statesOf(jobs)).toEqual([['job1', 'completed']]);
  });

  test('keeps nobody from stopping what fills it', async () => {
    const { jobs } = openJobs();
    const waiting = await wait(jobs, { isKept: true });
    fill();
    waiting.leave();
    await waiting.ended;
    expect(await jobs.release('owner', 'job1')).toBe('ended');
    expect(runs[0]!.signal.aborted).toBe(true);
  });
});
