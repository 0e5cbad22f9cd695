/** The command line at a terminal of its own, as util-linux' `script` makes one, with somebody at its keyboard. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import { cliPath } from './server.ts';
import { until } from './wait.ts';

export interface AtTerminal {
  /** Keys as they are struck: `\r` is Enter. */
  type(keys: string): void;
  /** All that was written so far, without what commands the screen. */
  screen(): string;
  /** The same with it. */
  raw(): string;
  /** Waits until this was written, after what was waited for before. */
  sees(words: string | RegExp): Promise<void>;
  /** A signal to the program itself. */
  signal(name: NodeJS.Signals): void;
  /** Waits for its end. @returns the exit code */
  ended(): Promise<number | null>;
}

interface Options {
  readonly environment: Readonly<Record<string, string>>;
  readonly columns?: number;
}

export function atTerminal(args: readonly string[], { environment, columns = 80 }: Options): AtTerminal {
  const quoted = args.map((arg) => `'${arg.replaceAll("'", "'\\''")}'`).join(' ');
  // The shell tells who it is, and becomes the program: one in between would die of the Ctrl-C that the program takes.
  const command = `stty cols ${columns}; echo "pid $$"; exec ${process.execPath} ${cliPath} ${quoted}`;
  // Whoever runs the tests, or CI, may want no colours; a person at a terminal has not said so.
  const { NO_COLOR: _noColor, FORCE_COLOR: _forceColor, CI: _ci, ...inherited } = process.env;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { ...inherited, TERM: 'xterm-256color', SVC_IDENTITY_STORE: 'vault', ...environment },
  });
  let raw = '';
  let seenTo = 0;
  child.stdout.on('data', (chunk: Buffer) => (raw += chunk.toString()));
  const closed = once(child, 'close') as Promise<[number | null]>;
  const screen = (): string => stripVTControlCharacters(raw).replaceAll('\r', '');
  return {
    type: (keys) => void child.stdin.write(keys),
    screen,
    raw: () => raw,
    async sees(words) {
      seenTo = await until(() => {
        const text = screen();
        const found = typeof words === 'string' ? indexAfter(text, words, seenTo) : matchAfter(text, words, seenTo);
        return found;
      }).catch(() => Promise.reject(new Error(`${String(words)} never came. The screen:\n${screen()}`)));
    },
    signal(name) {
      process.kill(Number(/pid (\d+)/.exec(raw)?.[1]), name);
    },
    ended: async () => (await closed)[0],
  };
}

function indexAfter(text: string, words: string, from: number): number | undefined {
  const at = text.indexOf(words, from);
  return at < 0 ? undefined : at + words.length;
}

function matchAfter(text: string, words: RegExp, from: number): number | undefined {
  const found = words.exec(text.slice(from));
  return found === null ? undefined : from + found.index + found[0].length;
}
