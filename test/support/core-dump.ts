/** What is in the memory of a running process, all of it. */
import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** @param folder for as long as it takes */
export async function dumpMemory(pid: number, folder: string): Promise<Buffer> {
  const prefix = join(folder, 'core');
  const file = `${prefix}.${pid}`;
  // With what is mapped from files, too (-a), whatever the process itself would leave out.
  await promisify(execFile)('gcore', ['-a', '-o', prefix, String(pid)], { maxBuffer: 64 * 1024 * 1024 });
  try {
    return await readFile(file);
  } finally {
    await rm(file);
  }
}
