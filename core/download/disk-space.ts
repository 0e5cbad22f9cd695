/** Whether a disk has room for what is about to be fetched. */
import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DownloadError } from './download-error.ts';
import type { FileToFetch } from './fetch-file.ts';
import { partPath } from './part-file.ts';

/** A disk filled to the last byte troubles everything else on it. */
const RESERVED_BYTES = 256 * 1024 * 1024;

/** What of these files is not on the disk yet. */
export async function missingBytes(files: readonly FileToFetch[]): Promise<number> {
  const missing = await Promise.all(
    files.map(async ({ path, sizeBytes }) => {
      const done = Math.max(await sizeOf(path), await sizeOf(partPath(path)));
      return Math.max(0, sizeBytes - done);
    }),
  );
  return missing.reduce((sum, bytes) => sum + bytes, 0);
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

/** @param folder need not exist. @returns what an ordinary user may still write to its disk */
export async function freeDiskBytes(folder: string): Promise<number> {
  const found = await statfs(folder).catch(() => undefined);
  if (found !== undefined) return found.bavail * found.bsize;
  const above = dirname(folder);
  return above === folder ? Infinity : freeDiskBytes(above);
}

/** @throws {DownloadError} `no_space` */
export function checkDiskSpace(neededBytes: number, freeBytes: number): void {
  if (neededBytes === 0 || neededBytes + RESERVED_BYTES <= freeBytes) return;
  throw new DownloadError(
    'no_space',
    `There is not enough room on the disk: ${gigabytes(neededBytes)} are needed, ${gigabytes(freeBytes)} are free. ` +
      'Make room, or choose another folder with the setting models.folder.',
  );
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
