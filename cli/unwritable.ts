import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { CommandError } from './command.ts';

/** Why a new file could not be written, and what to do. */
export function unwritable(path: string, cause: unknown): CommandError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
  const folder = dirname(path);
  if (code === 'EEXIST') return new CommandError(`${path} is there already. Name another file.`, { cause });
  if (code === 'ENOENT' && !existsSync(folder))
    return new CommandError(`there is no folder ${folder}. To make it: mkdir -p ${folder}`, { cause });
  return new CommandError(`${path} cannot be written (${code}).`, { cause });
}
