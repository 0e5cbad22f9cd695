/** The relay's own program, as an operator starts it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const program = new URL('../../dist/relay/main.js', import.meta.url).pathname;

export interface RelayProcess {
  readonly origin: string;
  readonly port: number;
  readonly process: ChildProcess;
  log(): string;
  /** Sends a signal and waits for the end. @returns the exit code, or null for a signal's */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

interface Place {
  readonly host?: string;
  /** A command that runs the program somewhere else, such as in another network namespace. */
  readonly within?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export async function startRelayProcess(
  port = 0,
  args: readonly string[] = [],
  { host = '127.0.0.1', within = [], environment = {} }: Place = {},
): Promise<RelayProcess> {
  const listen = ['--listen', `${host}:${port}`, '--limit', 'unauthenticatedPerAddress=0'];
  const [command, ...rest] = [...within, process.execPath, program, ...listen, ...args];
  const env = { ...process.env, ...environment };
  const child = spawn(command!, rest, { stdio: ['ignore', 'pipe', 'pipe'], env });
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const [line] = (await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    once(child, 'exit').then(() => Promise.reject(new Error(`the relay ended:\n${log}`))),
  ])) as [string];
  const ready = JSON.parse(line) as { origin: string; port: number };
  return {
    ...ready,
    process: child,
    log: () => log,
    end: async (signal) => {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      const ended = once(child, 'exit');
      child.kill(signal);
      const [code] = (await ended) as [number | null];
      return code;
    },
  };
}
