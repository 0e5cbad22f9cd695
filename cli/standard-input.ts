/** Reads what is handed to a command on standard input, where secrets belong: an argument is there for all to see. */
import type { ReadStream } from 'node:tty';
import { CommandError } from './command.ts';

const MAX_CHARACTERS = 64 * 1024;

/**
 * One line of a person, or all of a pipe or a file, up to 64 Ki characters.
 * @param ask called where it is a person who types; they may be asked more afterwards
 * @param stop ends the reading with what has come until then
 * @throws {CommandError} for more
 */
export async function readInput(stream: ReadStream, ask: () => void, stop: AbortSignal): Promise<string> {
  if (stream.isTTY) ask();
  stream.setEncoding('utf8');
  const end = (): void => void stream.destroy();
  stop.addEventListener('abort', end, { once: true });
  let text = '';
  try {
    for await (const piece of stream.iterator({ destroyOnReturn: !stream.isTTY })) {
      text += String(piece);
      if (text.length > MAX_CHARACTERS) throw new CommandError('there is more on standard input than this takes.');
      if (stream.isTTY && text.includes('\n')) break;
    }
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    stop.removeEventListener('abort', end);
  }
  return text;
}

/**
 * All of a pipe or a file, `undefined` for a person's keyboard.
 * @throws {CommandError} for more than `maxBytes`
 */
export async function readPiped(
  stream: ReadStream,
  { maxBytes, stop }: { readonly maxBytes: number; readonly stop: AbortSignal },
): Promise<Uint8Array | undefined> {
  if (stream.isTTY) return undefined;
  const end = (): void => void stream.destroy();
  stop.addEventListener('abort', end, { once: true });
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of stream) {
      const bytes = Buffer.from(piece);
      length += bytes.length;
      if (length > maxBytes) throw new CommandError('there is more on standard input than this takes.');
      pieces.push(bytes);
    }
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    stop.removeEventListener('abort', end);
  }
  return Buffer.concat(pieces);
}
