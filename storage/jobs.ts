/**
 * Work that outlives the request that began it: jobs of one kind, in the table and at work. Of one owner, whoever asks
 * for what is being done already joins it. One that nobody waits for any more is cancelled, unless it was begun to be
 * kept; what a stop or a crash of the service ended is begun again or left interrupted, as its kind says.
 */
import type { EventHub, Subscription } from './event-hub.ts';
import type { JobRecord, JobTable } from './job-table.ts';

export interface JobKind<Input, Progress, Result> {
  readonly name: string;
  /** Of all owners together. */
  readonly maxRunning: number;
  /** Of one that was to be kept. */
  readonly afterRestart: 'resume' | 'interrupt';
  /** What the table is given to keep, as JSON: no secret. */
  readonly encodeInput: (input: Input) => unknown;
  /** Reads what the table has. @throws for what no version of the program wrote */
  readonly parseInput: (stored: unknown) => Input;
  /** News of one step make earlier news of the same step worthless. */
  readonly stepOf: (progress: Progress) => string;
  readonly run: (input: Input, context: JobContext<Progress>) => Promise<Result>;
  /** What is kept and told of a failure. */
  readonly describeFailure: (error: unknown) => JobFailure;
}

export interface JobContext<Progress> {
  /** Fires when nobody wants it any more, or the service stops: then it has to end, soon. */
  readonly signal: AbortSignal;
  /** Tells who waits and, once a second at most, the table. */
  readonly report: (progress: Progress) => void;
  /** Adds to what it has cost. @throws where the table takes no note of that: nothing may be spent then */
  readonly charge: (microUsd: number) => void;
}

export interface JobFailure {
  readonly code: string;
  /** For its owner: no secret. */
  readonly message: string;
}

export type JobEnd<Result> =
  | { readonly state: 'completed'; readonly result: Result }
  | { readonly state: 'failed'; readonly failure: JobFailure }
  | { readonly state: 'cancelled' | 'interrupted' };

export type JobEvent<Progress, Result> =
  { readonly type: 'progress'; readonly progress: Progress } | { readonly type: 'ended'; readonly end: JobEnd<Result> };

export interface JobParams<Input> {
  readonly owner: string;
  /** What tells it from others of its owner. */
  readonly key: string;
  readonly input: Input;
  /** It goes on when nobody waits for it any more, and is resumed after a restart where its kind can be. */
  readonly isKept: boolean;
  /** Fires when whoever asks waits no longer. */
  readonly signal: AbortSignal;
}

export interface JoinedJob<Progress, Result> {
  readonly id: string;
  /** From its beginning to its end; without an end where the service stops. */
  readonly events: AsyncIterable<JobEvent<Progress, Result>>;
  /** Fires when the reader was too slow. */
  readonly cut: AbortSignal;
}

export interface Jobs<Input, Progress, Result> {
  /**
   * Begins a job, or joins the one that runs. One that is just being cancelled is waited for.
   * @returns undefined where as many run, or watch, as may
   * @throws what the disk refuses; nothing was begun then
   */
  join(params: JobParams<Input>): Promise<JoinedJob<Progress, Result> | undefined>;
  /** Newest first, those that have ended among them. */
  list(owner: string): readonly JobRecord[];
  /**
   * Keeps it no longer, and waits for its end if nobody else waits for it.
   * @returns whether it runs on for others; undefined where no such job runs
   * @throws what the disk refuses, of one that others wait for
   */
  release(owner: string, id: string): Promise<'ended' | 'running' | undefined>;
  /** Begins those again that the last process did not end. To be called once, before any other is begun. */
  resume(): void;
  /** Ends all that run; those that can be resumed are, by the next process. */
  close(): Promise<void>;
}

interface JobsOptions {
  readonly table: JobTable;
  readonly hub: EventHub;
  readonly newId: () => string;
  /** Fires when the service is to end, before anything of it is closed: who waits is gone then, and wanted to stay. */
  readonly stopping: AbortSignal;
  /** Milliseconds of a clock that only goes forward. */
  readonly elapsed: () => number;
  /** Runs a write until the disk takes it. */
  readonly writeInTime: (write: () => void) => void;
  /** Of a write that may be lost. */
  readonly onError: (error: unknown) => void;
}

/** A job has a few dozen steps, a model in many files some hundreds; of each the newest is kept. */
const BOUNDS = { maxReaders: 64, maxUnread: 2048, maxKept: 2048 } as const;
const PROGRESS_MS = 1000;

/** One that is at work in this process. */
interface LiveJob<Input, Progress> extends Omit<JobParams<Input>, 'isKept' | 'signal'> {
  readonly id: string;
  readonly stop: AbortController;
  isKept: boolean;
  readers: number;
  progress: Progress | undefined;
  ended: Promise<void>;
}

interface Message<Progress, Result> {
  readonly id: string;
  readonly event: JobEvent<Progress, Result>;
}

export function createJobs<Input, Progress, Result>(
  kind: JobKind<Input, Progress, Result>,
  options: JobsOptions,
): Jobs<Input, Progress, Result> {
  return new JobsOfKind(kind, options);
}

class JobsOfKind<Input, Progress, Result> implements Jobs<Input, Progress, Result> {
  readonly #kind: JobKind<Input, Progress, Result>;
  readonly #options: JobsOptions;
  readonly #topic;
  readonly #live = new Map<string, LiveJob<Input, Progress>>();
  #isClosed = false;

  constructor(kind: JobKind<Input, Progress, Result>, options: JobsOptions) {
    this.#kind = kind;
    this.#options = options;
    this.#topic = options.hub.topic<Message<Progress, Result>>(BOUNDS);
  }

  async join(params: JobParams<Input>): Promise<JoinedJob<Progress, Result> | undefined> {
    let job = this.#find(params);
    while (job?.stop.signal.aborted === true) {
      await job.ended;
      job = this.#find(params);
    }
    if (job === undefined) return this.#hasRoom() ? this.#watch(this.#begin(params), params.signal) : undefined;
    if (params.isKept && !job.isKept) {
      this.#options.table.keep(job.id, true);
      job.isKept = true;
    }
    return this.#watch(job, params.signal);
  }

  list(owner: string): readonly JobRecord[] {
    const stored = this.#options.table.list(this.#kind.name, owner);
    return stored.map((job) => ({ ...job, progress: this.#live.get(job.id)?.progress ?? job.progress }));
  }

  async release(owner: string, id: string): Promise<'ended' | 'running' | undefined> {
    const job = this.#live.get(id);
    if (job?.owner !== owner) return undefined;
    // A full disk must not keep anybody from ending what fills it.
    if (job.readers > 0 && job.isKept) this.#options.table.keep(id, false);
    job.isKept = false;
    if (job.readers > 0) return 'running';
    job.stop.abort();
    await job.ended;
    return 'ended';
  }

  resume(): void {
    const { table } = this.#options;
    for (const { id, owner, key, input } of table.running(this.#kind.name)) {
      const parsed = this.#kind.afterRestart === 'resume' ? this.#parsed(input) : undefined;
      if (parsed === undefined) table.end(id, 'interrupted', null);
      else this.#start(id, { owner, key, input: parsed.input, isKept: true });
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const live = [...this.#live.values()];
    for (const { stop } of live) stop.abort();
    await Promise.all(live.map(({ ended }) => ended));
  }

  #find({ owner, key }: Pick<JobParams<Input>, 'owner' | 'key'>): LiveJob<Input, Progress> | undefined {
    return [...this.#live.values()].find((job) => job.owner === owner && job.key === key);
  }

  #hasRoom(): boolean {
    return !this.#isOver() && this.#live.size < this.#kind.maxRunning;
  }

  #isOver(): boolean {
    return this.#isClosed || this.#options.stopping.aborted;
  }

  #parsed(stored: unknown): { readonly input: Input } | undefined {
    try {
      return { input: this.#kind.parseInput(stored) };
    } catch {
      return undefined;
    }
  }

  #begin({ owner, key, input, isKept }: JobParams<Input>): LiveJob<Input, Progress> {
    const id = this.#options.newId();
    const stored = { owner, key, input: this.#kind.encodeInput(input), isKept };
    this.#options.table.begin({ ...stored, id, kind: this.#kind.name });
    return this.#start(id, { owner, key, input, isKept });
  }

  #start(id: string, params: Omit<JobParams<Input>, 'signal'>): LiveJob<Input, Progress> {
    const stop = new AbortController();
    const job = { ...params, id, stop, readers: 0, progress: undefined, ended: Promise.resolve() };
    this.#live.set(id, job);
    job.ended = this.#run(job);
    return job;
  }

  async #run(job: LiveJob<Input, Progress>): Promise<void> {
    const end = await this.#outcome(job);
    const isResumed = end.state === 'interrupted' && job.isKept && this.#kind.afterRestart === 'resume';
    if (!isResumed) this.#options.writeInTime(() => this.#options.table.end(job.id, end.state, outcomeOf(end)));
    this.#live.delete(job.id);
    this.#topic.publish({ id: job.id, event: { type: 'ended', end } });
  }

  async #outcome(job: LiveJob<Input, Progress>): Promise<JobEnd<Result>> {
    try {
      return { state: 'completed', result: await this.#kind.run(job.input, this.#contextOf(job)) };
    } catch (error) {
      if (job.stop.signal.aborted) return { state: this.#isOver() ? 'interrupted' : 'cancelled' };
      return { state: 'failed', failure: this.#kind.describeFailure(error) };
    }
  }

  #contextOf(job: LiveJob<Input, Progress>): JobContext<Progress> {
    const { table, elapsed, onError } = this.#options;
    let writtenAt = elapsed();
    return {
      signal: job.stop.signal,
      report: (progress) => {
        job.progress = progress;
        const key = `${job.id} ${this.#kind.stepOf(progress)}`;
        this.#topic.publish({ id: job.id, event: { type: 'progress', progress } }, key);
        if (elapsed() - writtenAt < PROGRESS_MS) return;
        writtenAt = elapsed();
        try {
          table.progress(job.id, progress);
        } catch (error) {
          onError(error);
        }
      },
      charge: (microUsd) => table.charge(job.id, microUsd),
    };
  }

  #watch(job: LiveJob<Input, Progress>, signal: AbortSignal): JoinedJob<Progress, Result> | undefined {
    const subscription = this.#topic.subscribe({ signal, after: 'all', where: ({ id }) => id === job.id });
    if (subscription === undefined) {
      this.#endUnwanted(job);
      return undefined;
    }
    job.readers += 1;
    let hasLeft = false;
    const leave = (): void => {
      if (hasLeft) return;
      hasLeft = true;
      job.readers -= 1;
      this.#endUnwanted(job);
    };
    for (const left of [signal, subscription.cut]) left.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    return { id: job.id, cut: subscription.cut, events: eventsOf(subscription, leave) };
  }

  #endUnwanted(job: LiveJob<Input, Progress>): void {
    if (job.readers === 0 && !job.isKept) job.stop.abort();
  }
}

function outcomeOf<Result>(end: JobEnd<Result>): unknown {
  if (end.state === 'completed') return end.result;
  return end.state === 'failed' ? end.failure : null;
}

async function* eventsOf<Progress, Result>(
  { batches }: Subscription<Message<Progress, Result>>,
  leave: () => void,
): AsyncGenerator<JobEvent<Progress, Result>> {
  try {
    for await (const batch of batches) {
      for (const { event } of batch) {
        yield event.event;
        if (event.event.type === 'ended') return;
      }
    }
  } finally {
    leave();
  }
}
