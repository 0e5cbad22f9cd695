/** What is in the memory of a running process, all of it but what is empty. */
import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const PAGE_BYTES = 4096;

/** @param folder for as long as it takes */
export async function dumpMemory(pid: number, folder: string): Promise<Buffer> {
  const prefix = join(folder, 'core');
  const file = `${prefix}.${pid}`;
  // With what is mapped from files, too (-a), whatever the process itself would leave out.
  await promisify(execFile)('gcore', ['-a', '-o', prefix, String(pid)], { maxBuffer: 64 * 1024 * 1024 });
  try {
    return withoutEmptyPages(await readFile(file));
  } finally {
    await rm(file);
  }
}

/** Most of a core dump is memory that was reserved and never used. What is next to each other stays so. */
function withoutEmptyPages(core: Buffer): Buffer {
  const empty = Buffer.alloc(PAGE_BYTES);
  const used: Buffer[] = [];
  for (let at = 0; at < core.length; at += PAGE_BYTES) {
    const page = core.subarray(at, at + PAGE_BYTES);
    if (!page.equals(empty)) used.push(page);
  }
  return Buffer.concat(used);
}
