/** The process's own standard streams, as commands see them. */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import type { Terminal } from './command.ts';
import { TerminalLineEditor } from './line-editor.ts';
import { screenText, withoutControls } from './screen-text.ts';
import { readInput, readPiped } from './standard-input.ts';

/** Clears the line and goes back to its beginning (ECMA-48: EL, CR). */
const CLEAR_LINE = '\u001b[2K\r';
/** ECMA-48 SGR: black on white (the bright one, which no theme makes grey), and back. */
const BLACK_ON_WHITE = '\u001b[30;107m';
const OWN_COLOURS = '\u001b[0m';

/** @param stop ends a question that nobody has answered yet */
export function processTerminal(stop: AbortSignal): Terminal {
  const { stdin, stdout, stderr } = process;
  const isDumb = process.env['TERM'] === 'dumb';
  return {
    print: (text) => void stdout.write(`${screenText(text, stdout, !stdout.isTTY)}\n`),
    write: (text) => void stdout.write(screenText(text, stdout, !stdout.isTTY)),
    say: (text) => void stderr.write(`${screenText(text, stderr)}\n`),
    rewrite: stderr.isTTY
      ? (text) => void stderr.write(CLEAR_LINE + withoutControls(text).slice(0, Math.max(0, stderr.columns - 1)))
      : undefined,
    isInteractive: stdout.isTTY,
    read: (question) => readInput(stdin, () => void stderr.write(`${question}\n`), stop),
    readPiped: (maxBytes) => readPiped(stdin, { maxBytes, stop }),
    ask:
      stdin.isTTY && stderr.isTTY
        ? (question, signal) => askUser(question, signal === undefined ? stop : AbortSignal.any([stop, signal]))
        : undefined,
    edit:
      stdin.isTTY && stdout.isTTY
        ? (options) => new TerminalLineEditor({ stdin, stdout, stop, hasControls: !isDumb, ...options })
        : undefined,
    draw: stdout.isTTY ? (rows) => draw(stdout, rows) : undefined,
  };
}

function draw(stdout: NodeJS.WriteStream, rows: readonly string[]): boolean {
  if (rows.some((row) => row.length > stdout.columns)) return false;
  for (const row of rows) stdout.write(`${BLACK_ON_WHITE}${withoutControls(row)}${OWN_COLOURS}\n`);
  return true;
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
