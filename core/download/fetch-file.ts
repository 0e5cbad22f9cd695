/**
 * Fetches one file, going on where an earlier attempt stopped, and keeps it only when all of it is there and is what
 * was promised.
 *
 * A resumed request asks for the rest of the file as it was (`Range` with `If-Range`, RFC 9110 section 13.1.5). A server
 * that has another file by now, or no ranges, sends the whole: then the part starts over.
 */
import { stat } from 'node:fs/promises';
import { isRecord } from '../json.ts';
import { DownloadError } from './download-error.ts';
import type { HttpAnswer, HttpClient } from './http-client.ts';
import { openPart, type PartFile } from './part-file.ts';
import type { PartState } from './part-state.ts';
import { refusal, type Subject } from './refusal.ts';

export interface FileToFetch {
  readonly url: URL;
  /** Where it will be. */
  readonly path: string;
  readonly sizeBytes: number;
  /** 64 hexadecimal digits; without it only the size is checked. */
  readonly sha256?: string | undefined;
  /** For an error about it. */
  readonly subject: Subject;
}

export interface FetchOptions {
  readonly http: HttpClient;
  readonly signal: AbortSignal;
  /** Told how many of the file's bytes are there, again and again. */
  readonly onProgress: (doneBytes: number) => void;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Failures in a row without a single byte between them; a large file sees many, each after some gigabytes. */
const MAX_FAILURES = 5;
const FIRST_PAUSE_MS = 500;

/**
 * @returns `present` when a file of that size is there already
 * @throws {DownloadError} what was fetched is kept for a later attempt, unless it proved wrong
 */
export async function fetchFile(file: FileToFetch, options: FetchOptions): Promise<'fetched' | 'present'> {
  if (await isPresent(file)) return 'present';
  const part = await openPart(file.path);
  try {
    await takeUp(part, file, options);
    await fetchRest(part, file, options);
    checkWhole(part, file);
  } catch (error) {
    const reported = isFull(error) ? new DownloadError('no_space', 'The disk is full.', { cause: error }) : error;
    await (isError(reported, 'wrong_content') ? part.discard() : part.keep());
    throw reported;
  }
  await part.finish();
  return 'fetched';
}

/** @throws {DownloadError} `occupied` */
async function isPresent({ path, sizeBytes }: FileToFetch): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || found.size === sizeBytes) return found !== undefined;
  throw new DownloadError(
    'occupied',
    `${path} is there already, with ${found.size} bytes instead of ${sizeBytes}. Remove it first, then try again.`,
  );
}

/** Goes on with what an earlier attempt left, where that is the beginning of this very file. */
async function takeUp(part: PartFile, file: FileToFetch, { signal, onProgress }: FetchOptions): Promise<void> {
  const { state } = part;
  if (state !== undefined && isSameFile(state, file)) {
    await part.resume({ signal, onProgress: () => onProgress(part.offset) });
    if (part.offset <= file.sizeBytes) return;
  }
  await part.restart(beginning(file));
}

/** Without a hash only the server can tell whether it still has the same file, by its `ETag`. */
function isSameFile(state: PartState, file: FileToFetch): boolean {
  if (state.sizeBytes !== file.sizeBytes) return false;
  if (file.sha256 !== undefined && state.sha256 === file.sha256) return true;
  return state.source === sourceOf(file.url) && state.etag !== undefined;
}

function beginning(file: FileToFetch, etag?: string): PartState {
  return {
    source: sourceOf(file.url),
    sizeBytes: file.sizeBytes,
    ...(file.sha256 === undefined ? {} : { sha256: file.sha256 }),
    ...(etag === undefined ? {} : { etag }),
  };
}

/** A query may hold a signature. */
function sourceOf({ origin, pathname }: URL): string {
  return origin + pathname;
}

async function fetchRest(part: PartFile, file: FileToFetch, options: FetchOptions): Promise<void> {
  const start = part.offset;
  let failures = 0;
  while (part.offset < file.sizeBytes) {
    const before = part.offset;
    try {
      await fetchOnce(part, file, options);
    } catch (error) {
      // A network that is lost on the way may come back; one that was never there will not.
      const isPassing = isError(error, 'interrupted') || (isError(error, 'unreachable') && part.offset > start);
      failures = part.offset > before ? 1 : failures + 1;
      if (!isPassing || failures >= MAX_FAILURES) throw error;
      await options.sleep(FIRST_PAUSE_MS * 2 ** (failures - 1), options.signal);
    }
  }
}

async function fetchOnce(part: PartFile, file: FileToFetch, { http, signal, onProgress }: FetchOptions): Promise<void> {
  const { offset, state } = part;
  const ifRange = state?.etag === undefined ? {} : { 'if-range': state.etag };
  const headers = offset === 0 ? {} : { range: `bytes=${offset}-`, ...ifRange };
  const answer = await http.get(file.url, { signal, headers });
  try {
    await prepare(part, file, answer);
  } catch (error) {
    await answer.discard();
    throw error;
  }
  let head = part.offset === 0 ? '' : MAGIC;
  for await (const chunk of answer.body) {
    head += Buffer.from(chunk.subarray(0, MAGIC.length - head.length)).toString('latin1');
    if (!MAGIC.startsWith(head)) throw wrong(`${file.url.host} sends no GGUF file, but something else.`);
    if (part.offset + chunk.length > file.sizeBytes) throw wrong(`${file.url.host} sends more than it promised.`);
    await part.append(chunk);
    onProgress(part.offset);
  }
  if (part.offset < file.sizeBytes) throw interrupted(`${file.url.host} ended before the file did.`);
}

/** Every GGUF file begins with it, each part of a split one too. */
const MAGIC = 'GGUF';

/** Sees to it that the answer's first byte is the one that the part needs next. */
async function prepare(part: PartFile, file: FileToFetch, answer: HttpAnswer): Promise<void> {
  const { host } = file.url;
  if (answer.status === 200) {
    const length = answer.headers.get('content-length');
    // What was fetched so far is given up for the whole file only, not for whatever page of words.
    if (Number(length) !== file.sizeBytes && (length !== null || part.offset > 0)) {
      throw new DownloadError('bad_answer', `${host} sends ${length ?? 'an unknown number of'} bytes, not the file.`);
    }
    return part.restart(beginning(file, strongEtag(answer)));
  }
  if (answer.status === 206 && isRest(answer, part, file)) return;
  if (answer.status !== 206 && answer.status !== 416) throw refusal(answer, file.subject);
  await part.restart(beginning(file));
  throw interrupted(`${host} does not go on where it was asked to.`);
}

function isRest({ headers }: HttpAnswer, part: PartFile, file: FileToFetch): boolean {
  const [, first, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get('content-range') ?? '') ?? [];
  return Number(first) === part.offset && (total === '*' || Number(total) === file.sizeBytes);
}

/** RFC 9110 section 8.8.1: a weak one says nothing about single bytes. */
function strongEtag({ headers }: HttpAnswer): string | undefined {
  const etag = headers.get('etag') ?? '';
  return /^"[^"]*"$/.test(etag) ? etag : undefined;
}

function checkWhole(part: PartFile, { sha256 }: FileToFetch): void {
  if (sha256 === undefined || part.digest() === sha256) return;
  throw wrong(
    'What was fetched is not what was promised: its SHA-256 is another. It has been deleted; nothing was installed.',
  );
}

function wrong(message: string): DownloadError {
  return new DownloadError('wrong_content', message);
}

function interrupted(message: string): DownloadError {
  return new DownloadError('interrupted', message);
}

function isError(error: unknown, code: DownloadError['code']): boolean {
  return error instanceof DownloadError && error.code === code;
}

function isFull(error: unknown): boolean {
  return isRecord(error) && (error['code'] === 'ENOSPC' || error['code'] === 'EDQUOT');
}
