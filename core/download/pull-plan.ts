/** What has to be fetched for a model that a user named: which files, from where, to where, how large. */
import { basename, join } from 'node:path';
import { parseGgufShardFilename } from '@huggingface/gguf';
import { modelFiles } from '../inference/local/model-files.ts';
import { DownloadError } from './download-error.ts';
import type { FileToFetch } from './fetch-file.ts';
import type { HttpClient } from './http-client.ts';
import type { Hub } from './hub.ts';
import { chooseModel, modelCandidates, type ModelCandidate } from './model-choice.ts';
import { decodePath, type ModelReference } from './model-reference.ts';
import { refusal } from './refusal.ts';
import { safeNames } from './safe-path.ts';

export interface PullPlan {
  /** In order, all parts of a split model. */
  readonly files: readonly [FileToFetch, ...FileToFetch[]];
  readonly totalBytes: number;
}

/** Several models are meant, or none: the user has to say which. */
export class UnclearChoiceError extends Error {
  override readonly name = 'UnclearChoiceError';
  /** `ambiguous`: all of the candidates are meant; `absent`: none, and they are what there is. */
  readonly kind: 'ambiguous' | 'absent';
  readonly repository: string;
  readonly candidates: readonly ModelCandidate[];

  constructor(kind: 'ambiguous' | 'absent', repository: string, candidates: readonly ModelCandidate[]) {
    super(`It is not clear which model of ${repository} is meant.`);
    this.kind = kind;
    this.repository = repository;
    this.candidates = candidates;
  }
}

export interface PullOptions {
  readonly http: HttpClient;
  readonly hub: Hub;
  readonly modelsDir: string;
  /** 64 hexadecimal digits, where the user knows them. */
  readonly sha256: string | undefined;
  readonly signal: AbortSignal;
}

/** @throws {DownloadError} @throws {UnclearChoiceError} */
export async function planPull(reference: ModelReference, options: PullOptions): Promise<PullPlan> {
  const files =
    reference.kind === 'hub' ? await filesOfHub(reference, options) : await filesOfUrl(reference.url, options);
  const [first, ...others] = files;
  if (first === undefined) throw new TypeError('a model has at least one file');
  const { sha256 } = options;
  if (sha256 !== undefined && others.length > 0) {
    throw new DownloadError('bad_reference', 'This model has several files: one SHA-256 cannot be that of all.');
  }
  if (sha256 !== undefined && first.sha256 !== undefined && sha256 !== first.sha256) {
    throw new DownloadError('wrong_content', `The server says that the file's SHA-256 is ${first.sha256}, not yours.`);
  }
  return {
    files: [{ ...first, sha256: sha256 ?? first.sha256 }, ...others],
    totalBytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  };
}

type HubReference = Extract<ModelReference, { readonly kind: 'hub' }>;

async function filesOfHub({ repository, wanted }: HubReference, options: PullOptions): Promise<readonly FileToFetch[]> {
  const { hub, modelsDir, signal } = options;
  const candidates = modelCandidates(await hub.list(repository, signal));
  if (candidates.length === 0) {
    throw new DownloadError('not_found', `hf:${repository} holds no GGUF model. Look for one whose name ends in GGUF.`);
  }
  const [chosen, ...more] = chooseModel(candidates, wanted);
  if (chosen === undefined) throw new UnclearChoiceError('absent', repository, candidates);
  if (more.length > 0) throw new UnclearChoiceError('ambiguous', repository, [chosen, ...more]);
  return chosen.files.map(({ path, sizeBytes, sha256 }) => ({
    url: hub.fileUrl(repository, path),
    path: join(modelsDir, ...checkedNames(`${repository}/${path}`)),
    sizeBytes,
    sha256,
    subject: hub.subject(repository),
  }));
}

/** The parts of a split model lie side by side, under names that say which they are. */
async function filesOfUrl(url: URL, options: PullOptions): Promise<readonly FileToFetch[]> {
  const path = decodePath(url.pathname);
  if (Number(parseGgufShardFilename(basename(path))?.shard ?? 1) !== 1) {
    throw new DownloadError(
      'bad_reference',
      'This is a later part of a model: give the URL of the first (00001-of-…).',
    );
  }
  const files: FileToFetch[] = [];
  for (const part of modelFiles(path)) {
    const partUrl = new URL(url);
    partUrl.pathname = part === path ? url.pathname : part.split('/').map(encodeURIComponent).join('/');
    const found = await probe(partUrl, options);
    files.push({ url: partUrl, path: join(options.modelsDir, ...checkedNames(basename(part))), ...found });
  }
  return files;
}

/** Asks for one byte: unlike HEAD, every server and every signed address answers that as it answers the download. */
async function probe(
  url: URL,
  { http, signal }: PullOptions,
): Promise<Pick<FileToFetch, 'sizeBytes' | 'sha256' | 'subject'>> {
  const subject = { what: url.origin + url.pathname };
  const answer = await http.get(url, { signal, headers: { range: 'bytes=0-0' } });
  await answer.discard();
  if (answer.status !== 200 && answer.status !== 206) throw refusal(answer, subject);
  const total =
    answer.status === 206
      ? /\/(\d+)$/.exec(answer.headers.get('content-range') ?? '')?.[1]
      : (answer.headers.get('content-length') ?? undefined);
  if (total === undefined) throw new DownloadError('bad_answer', `${url.host} does not say how large the file is.`);
  return { sizeBytes: Number(total), sha256: answer.linked.sha256, subject };
}

/** @throws {DownloadError} for a path that could lead out of the models folder */
function checkedNames(path: string): readonly string[] {
  const names = safeNames(path);
  if (names !== undefined) return names;
  throw new DownloadError('bad_answer', 'The file has a name that could lead out of the models folder. Not fetched.');
}
