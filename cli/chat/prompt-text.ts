/** Texts that go into a prompt: what is piped in, and files. */
import { readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { CommandError } from '../command.ts';

/** Longer than any context. */
export const MAX_PROMPT_BYTES = 4 * 1024 * 1024;

/** @param name what it is called in the refusal. @throws {CommandError} for what is no text */
export function decodeText(bytes: Uint8Array, name: string): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // Said below.
  }
  throw new CommandError(`${name} is no text in UTF-8, and models here read text alone.`);
}

/** A file as part of a message: under its name, and between fences longer than any in it. */
export async function readFilePart(path: string): Promise<string> {
  const text = decodeText(await readBounded(withHome(path)), path);
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = '`'.repeat(longest + 1);
  return `${basename(path)}:\n${fence}\n${text.trimEnd()}\n${fence}\n\n`;
}

/** What a shell does where a person types a path outside of one. */
export function withHome(path: string): string {
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : path;
}

/** @throws {CommandError} for what can't be read, is no file or too long */
export async function readBounded(path: string): Promise<Uint8Array> {
  try {
    // Opening a pipe would wait for whoever writes to it.
    const found = await stat(path);
    if (!found.isFile()) throw new CommandError(`${path} is no file.`);
    if (found.size > MAX_PROMPT_BYTES) throw new CommandError(`${path} is longer than 4 MiB, which no model can read.`);
    return await readFile(path);
  } catch (cause) {
    if (cause instanceof CommandError) throw cause;
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    const reason =
      { ENOENT: 'does not exist', EACCES: 'may not be read by this user' }[code] ?? `can't be read (${code})`;
    throw new CommandError(`${path} ${reason}.`, { cause });
  }
}
