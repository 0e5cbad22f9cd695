import { readFile } from 'node:fs/promises';
import { IdentityError } from './secret-store.ts';

/** @returns undefined where there is no such file. @throws {IdentityError} where it can't be told: it is not gone then */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    if (code === 'ENOENT') return undefined;
    throw new IdentityError('locked', `${path} can't be read (${code}). See to it that this user may.`, { cause });
  }
}
