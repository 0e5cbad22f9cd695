/** The job of fetching a model: what has to be known to begin it, what it tells on its way, and how it ends. */
import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import * as z from 'zod';
import { findDiskFault, remedyOf } from '../../storage/disk-fault.ts';
import type { JobEvent, JobFailure, JobKind, Jobs, JoinedJob } from '../../storage/jobs.ts';
import { DownloadError } from './download-error.ts';
import { removeEmptyFolders } from './empty-folders.ts';
import { fetchPlan } from './fetch-plan.ts';
import type { HubAccess } from './hub-environment.ts';
import { parseModelReference } from './model-reference.ts';
import { planPull, UnclearChoiceError } from './pull-plan.ts';
import { readRemoteFacts } from './remote-header.ts';

const inputSchema = z.strictObject({
  /** As `parseModelReference` reads it. */
  reference: z.string(),
  /** 64 hexadecimal digits, where the owner knows them. */
  sha256: z.string().optional(),
});
export type PullInput = Readonly<z.output<typeof inputSchema>>;

export type PullProgress =
  /** Finds out what there is to fetch. */
  | { readonly step: 'plan' }
  | {
      readonly step: 'file';
      /** Counted from 0. */
      readonly index: number;
      readonly sha256: string | undefined;
      readonly fileBytes: number;
      readonly doneBytes: number;
      readonly allBytes: number;
      readonly allDoneBytes: number;
    }
  | { readonly step: 'verify' }
  | { readonly step: 'finish' };

export interface PullResult {
  /** Of the first file. */
  readonly path: string;
  /** Its content was checked, and not only its size. */
  readonly isHashed: boolean;
  /** False where all of it was there already. */
  readonly isNew: boolean;
}

interface PullJobOptions {
  /** @throws {DownloadError} `bad_environment` */
  readonly access: () => HubAccess;
  readonly modelsDir: string;
  /** Milliseconds of a clock that only goes forward. */
  readonly elapsed: () => number;
  /** Told of what is no fault of the network, the hub or the disk. */
  readonly onError: (error: unknown) => void;
}

/** Each fills a disk and a network by itself. */
const MAX_RUNNING = 4;
const PROGRESS_MS = 100;

export function pullJobs(options: PullJobOptions): JobKind<PullInput, PullProgress, PullResult> {
  return {
    name: 'pull',
    maxRunning: MAX_RUNNING,
    afterRestart: 'resume',
    encodeInput: ({ reference, ...input }) => ({ ...input, reference: withoutQuery(reference) }),
    parseInput: (stored) => inputSchema.parse(stored),
    stepOf: (progress) => (progress.step === 'file' ? `file ${progress.index}` : progress.step),
    run: (input, { signal, report }) => pull(input, options, { signal, report }),
    describeFailure: (error) => describeFailure(error, options.onError),
  };
}

/** A query may hold a signature, which is nothing to keep. Without it a URL of that kind is not fetched again. */
function withoutQuery(reference: string): string {
  return reference.replace(/[?#].*$/s, '');
}

/** Whoever asks for the same waits for the same. */
export function pullKey({ reference, sha256 = '' }: PullInput): string {
  return createHash('sha256').update(`${reference} ${sha256}`).digest('hex');
}

export type PullJobs = Jobs<PullInput, PullProgress, PullResult>;
export type PullEvent = JobEvent<PullProgress, PullResult>;
export type JoinedPull = JoinedJob<PullProgress, PullResult>;

interface PullContext {
  readonly signal: AbortSignal;
  readonly report: (progress: PullProgress) => void;
}

async function pull(
  { reference, sha256 }: PullInput,
  { access, modelsDir, elapsed }: PullJobOptions,
  { signal, report }: PullContext,
): Promise<PullResult> {
  report({ step: 'plan' });
  const { endpoint, hub, http } = access();
  const plan = await planPull(parseModelReference(reference, endpoint.origin), {
    http,
    hub,
    modelsDir,
    sha256,
    signal,
  });
  // What is no model shows before the rest of it is fetched.
  await readRemoteFacts(plan, { http, signal });
  const [first] = plan.files;
  let toldAt = -Infinity;
  const onProgress: Parameters<typeof fetchPlan>[1]['onProgress'] = (file, { fileBytes, allBytes }) => {
    if (elapsed() - toldAt < PROGRESS_MS && fileBytes < file.sizeBytes) return;
    toldAt = elapsed();
    report({
      step: 'file',
      index: plan.files.indexOf(file),
      sha256: file.sha256,
      fileBytes: file.sizeBytes,
      doneBytes: fileBytes,
      allBytes: plan.totalBytes,
      allDoneBytes: allBytes,
    });
  };
  const outcome = await fetchPlan(plan, { http, modelsDir, signal, onProgress }).catch(async (error: unknown) => {
    await removeEmptyFolders(dirname(first.path), modelsDir);
    throw error;
  });
  // Each file was checked before it got its name.
  report({ step: 'verify' });
  report({ step: 'finish' });
  return { path: first.path, isHashed: first.sha256 !== undefined, isNew: outcome === 'fetched' };
}

function describeFailure(error: unknown, onError: (error: unknown) => void): JobFailure {
  if (error instanceof DownloadError) return { code: error.code, message: error.message };
  if (error instanceof UnclearChoiceError) return { code: 'bad_reference', message: choiceText(error) };
  const disk = findDiskFault(error);
  if (disk !== undefined) {
    if (disk.fault === 'full') return { code: 'no_space', message: 'The disk is full.' };
    return { code: 'disk', message: `The models folder can't be written (${disk.code}). ${remedyOf(disk.fault)}` };
  }
  onError(error);
  return { code: 'internal', message: 'Something went wrong inside the service. Its log says more.' };
}

function choiceText({ kind, repository, candidates }: UnclearChoiceError): string {
  const head = kind === 'absent' ? `hf:${repository} has no such model.` : `hf:${repository} has several models.`;
  return `${head} Name one of them after a colon: ${candidates.map(({ name }) => name).join(', ')}.`;
}
