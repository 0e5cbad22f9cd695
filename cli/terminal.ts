/** The process's own standard streams, as commands see them. */
import { createInterface } from 'node:readline/promises';
import type { Terminal } from './command.ts';

/** Clears the line and goes back to its beginning (ECMA-48: EL, CR). */
const CLEAR_LINE = '\u001b[2K\r';

/** @param stop ends a question that nobody has answered yet */
export function processTerminal(stop: AbortSignal): Terminal {
  const { stdin, stdout, stderr } = process;
  return {
    print: (text) => void stdout.write(`${text}\n`),
    say: (text) => void stderr.write(`${text}\n`),
    rewrite: stderr.isTTY
      ? (text) => void stderr.write(CLEAR_LINE + text.slice(0, Math.max(0, stderr.columns - 1)))
      : undefined,
    ask: stdin.isTTY && stderr.isTTY ? (question) => askUser(question, stop) : undefined,
  };
}

/** Without a terminal of its own: Ctrl-C then reaches the program as the signal that it is. */
async function askUser(question: string, stop: AbortSignal): Promise<string> {
  const reader = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  try {
    return await reader.question(question, { signal: stop });
  } catch (error) {
    if (stop.aborted) return '';
    throw error;
  } finally {
    reader.close();
  }
}
