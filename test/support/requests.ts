/** Many plain requests from one of the machines of a test network, in one process there. */
import { spawn } from 'node:child_process';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { IncomingHttpHeaders } from 'node:http';

export interface PlainRequest {
  readonly url: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The address to come from, of those that the machine has. */
  readonly from?: string;
  readonly body?: string;
  /** So many spaces in place of a body. */
  readonly bodyBytes?: number;
  readonly isChunked?: boolean;
}

export interface PlainAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export async function requestAll(
  within: readonly string[],
  requests: readonly PlainRequest[],
): Promise<readonly PlainAnswer[]> {
  return runProgram(within, 'requests-program', requests);
}

/** Runs one of this folder's programs on a machine: JSON in, JSON out. */
export async function runProgram<Result>(within: readonly string[], name: string, input: unknown): Promise<Result> {
  const program = fileURLToPath(new URL(`../../dist/test/support/${name}.js`, import.meta.url));
  const [command, ...args] = [...within, process.execPath, program];
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(input));
  return (await json(child.stdout)) as Result;
}
