/** The process's own standard streams, as commands see them. */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import type { Terminal } from './command.ts';
import { readInput } from './standard-input.ts';

/** Clears the line and goes back to its beginning (ECMA-48: EL, CR). */
const CLEAR_LINE = '\u001b[2K\r';
/** ECMA-48 SGR: black on white (the bright one, which no theme makes grey), and back. */
const BLACK_ON_WHITE = '\u001b[30;107m';
const OWN_COLOURS = '\u001b[0m';

/** @param stop ends a question that nobody has answered yet */
export function processTerminal(stop: AbortSignal): Terminal {
  const { stdin, stdout, stderr } = process;
  return {
    // Programs that read it get every byte.
    print: (text) => void stdout.write(`${stdout.isTTY ? plain(text) : text}\n`),
    say: (text) => void stderr.write(`${plain(text)}\n`),
    rewrite: stderr.isTTY
      ? (text) => void stderr.write(CLEAR_LINE + plain(text).slice(0, Math.max(0, stderr.columns - 1)))
      : undefined,
    isInteractive: stdout.isTTY,
    read: (question) => readInput(stdin, () => void stderr.write(`${question}\n`), stop),
    ask:
      stdin.isTTY && stderr.isTTY
        ? (question, signal) => askUser(question, signal === undefined ? stop : AbortSignal.any([stop, signal]))
        : undefined,
    draw: stdout.isTTY ? (rows) => draw(stdout, rows) : undefined,
  };
}

function draw(stdout: NodeJS.WriteStream, rows: readonly string[]): boolean {
  if (rows.some((row) => row.length > stdout.columns)) return false;
  for (const row of rows) stdout.write(`${BLACK_ON_WHITE}${plain(row)}${OWN_COLOURS}\n`);
  return true;
}

/** Names of files, and what stands in them, come from anywhere: none of it may command the terminal. */
function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '?');
}

/** Without a terminal of its own: Ctrl-C then reaches the program as the signal that it is. Ctrl-D is an empty answer. */
async function askUser(question: string, stop: AbortSignal): Promise<string> {
  const reader = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  try {
    // A reader whose input has ended leaves its question open for ever.
    return await Promise.race([reader.question(question, { signal: stop }), once(reader, 'close').then(() => '')]);
  } catch (error) {
    if (stop.aborted) return '';
    throw error;
  } finally {
    reader.close();
  }
}
