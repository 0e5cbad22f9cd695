/** Fetches all files of a model, into the models folder. */
import { setTimeout as sleep } from 'node:timers/promises';
import { checkDiskSpace, freeDiskBytes, missingBytes } from './disk-space.ts';
import { fetchFile, type FileToFetch } from './fetch-file.ts';
import type { HttpClient } from './http-client.ts';
import type { PullPlan } from './pull-plan.ts';

interface FetchPlanOptions {
  readonly http: HttpClient;
  readonly modelsDir: string;
  readonly signal: AbortSignal;
  /** Told once, before the first byte: how many of all there are already. */
  readonly onBegin?: (begin: { readonly doneBytes: number; readonly missingBytes: number }) => void;
  /** Told how many of a file's bytes there are, again and again, and how many of all. */
  readonly onProgress: (file: FileToFetch, done: { readonly fileBytes: number; readonly allBytes: number }) => void;
}

/**
 * @returns `present` when all of it was there already
 * @throws {DownloadError} `no_space` before anything is fetched, and what `fetchFile` throws
 */
export async function fetchPlan(
  { files, totalBytes }: PullPlan,
  options: FetchPlanOptions,
): Promise<'fetched' | 'present'> {
  const { http, modelsDir, signal, onBegin, onProgress } = options;
  const missing = await missingBytes(files);
  checkDiskSpace(missing, await freeDiskBytes(modelsDir));
  onBegin?.({ doneBytes: totalBytes - missing, missingBytes: missing });
  let [earlierBytes, isNew] = [0, false];
  for (const file of files) {
    const report = (fileBytes: number): void => onProgress(file, { fileBytes, allBytes: earlierBytes + fileBytes });
    const outcome = await fetchFile(file, { http, signal, onProgress: report, sleep: sleepUnless });
    isNew ||= outcome === 'fetched';
    earlierBytes += file.sizeBytes;
    report(file.sizeBytes);
  }
  return isNew ? 'fetched' : 'present';
}

function sleepUnless(ms: number, signal: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal }).catch(() => undefined);
}
