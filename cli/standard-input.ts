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
