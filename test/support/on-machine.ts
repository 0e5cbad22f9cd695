/** Programs on one of the machines of a test network, each with a home of its own. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Machine } from './network.ts';
import type { CliResult } from './server.ts';

const laptopClients = new URL('../../dist/test/support/laptop-clients-program.js', import.meta.url).pathname;

export interface IdempotencyResult {
  readonly child: ChildProcessWithoutNullStreams;
  /** What it has said to its user so far. */
  words(): string;
  readonly ended: Promise<CliResult>;
}

interface Beginning {
  readonly home: string;
  /** What is piped into it. */
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** The Node that runs it, if not this one. */
  readonly node?: string;
}

/** @param program a file of this build, and its arguments */
export function beginOn(
  { within }: Pick<Machine, 'within'>,
  program: readonly string[],
  { home, input = '', environment = {}, node = process.execPath }: Beginning,
): IdempotencyResult {
  const [command, ...rest] = [...within, node, ...program];
  const child = spawn(command!, rest, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, SVC_HOME: home, SVC_IDENTITY_STORE: 'vault', ...environment },
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdin.end(input);
  const ended = Promise.all([text(child.stdout), once(child, 'close')]).then(([stdout, [code]]) => ({
    code: code as number | null,
    stdout,
    stderr,
  }));
  return { child, words: () => stderr, ended };
}

/** What official clients there are told, of which each is to be told `PARIS`. */
export async function laptopClientsOn(machine: Pick<Machine, 'within'>, url: string, home: string): Promise<object> {
  const { stdout } = await beginOn(machine, [laptopClients], { home, input: JSON.stringify({ url }) }).ended;
  return JSON.parse(stdout) as object;
}

const paris = 'The capital of France is Paris.';
export const PARIS = {
  openai: paris,
  'openai stream': paris,
  'openai responses': paris,
  'anthropic stream': paris,
  ollama: paris,
  'ollama stream': paris,
};
