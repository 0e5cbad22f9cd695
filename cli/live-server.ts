/** The server that is running now, as the command line finds and asks it. */
import { readRunFile, type RunFile } from '../core/config/home.ts';
import { isRecord } from '../core/json.ts';
import { RUN_TOKEN_HEADER } from '../gateway/run-token.ts';
import { CommandError } from './command.ts';

/** A server on this machine that is alive answers within this; a hung one must not hang its owner's terminal. */
const ANSWER_TIMEOUT_MS = 5000;

type AdminMethod = 'GET' | 'POST' | 'DELETE';

export interface LiveServer {
  readonly run: RunFile;
  readonly url: string;
  /** Calls `/admin/<path>`. @throws {CommandError} when it answers with an error */
  ask(method: AdminMethod, path: string, body?: object): Promise<Record<string, unknown>>;
}

/** @returns undefined where none runs: no run file, or nobody behind it */
export async function findLiveServer(home: string): Promise<LiveServer | undefined> {
  const run = await readRunFile(home);
  if (run === undefined) return undefined;
  const url = `http://${run.host}:${run.port}`;
  const ask = (method: AdminMethod, path: string, body?: object) => askServer({ url, run, method, path, body });
  const answer = await ask('GET', 'status').catch(() => undefined);
  // Another program may have the port by now.
  return answer?.['pid'] === run.pid ? { run, url, ask } : undefined;
}

interface Question {
  readonly url: string;
  readonly run: RunFile;
  readonly method: AdminMethod;
  readonly path: string;
  readonly body?: object | undefined;
}

async function askServer({ url, run, method, path, body }: Question): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}/admin/${path}`, {
    method,
    headers: { [RUN_TOKEN_HEADER]: run.token, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  });
  const answer: unknown = await response.json();
  if (response.ok && isRecord(answer)) return answer;
  throw new CommandError(`the server answered ${response.status} to ${method} /admin/${path}.${messageOf(answer)}`);
}

/** What the server says for people, where it does. */
function messageOf(answer: unknown): string {
  const error = isRecord(answer) ? answer['error'] : undefined;
  return isRecord(error) && typeof error['message'] === 'string' ? ` ${error['message']}` : '';
}
