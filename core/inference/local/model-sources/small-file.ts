/** Another app's small files, read so that whatever lies there can do no harm. */
import { readFile, stat } from 'node:fs/promises';
import { parseBoundedJson } from '../../../json/json-reader.ts';

/** Settings and manifests are a few kilobytes. */
const MAX_BYTES = 1024 * 1024;

/** Undefined for what is absent, unreadable, too long to be it, or no file: a pipe would be waited for. */
export async function readSmallFile(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() !== true || found.size > MAX_BYTES) return undefined;
  return readFile(path, 'utf8').catch(() => undefined);
}

/** Undefined also for what is no JSON. */
export async function readSmallJson(path: string): Promise<unknown> {
  const text = await readSmallFile(path);
  try {
    return text === undefined ? undefined : parseBoundedJson(text);
  } catch {
    return undefined;
  }
}
