/** The server that is running now, as the command line finds and asks it. */
import { readRunFile, type RunFile } from '../core/config/home.ts';
import { isRecord } from '../core/json.ts';
import { RUN_TOKEN_HEADER } from '../gateway/run-token.ts';
import { CommandError } from './command.ts';

/** A server on this machine that is alive answers within this; a hung one must not hang its owner's terminal. */
const ANSWER_TIMEOUT_MS = 5000;

type AdminMethod = 'GET' | 'POST';

interface AskOptions {
  readonly body?: object;
  /** For what may take long, such as loading a model; undefined waits without a limit. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal;
}

export interface LiveServer {
  readonly run: RunFile;
  readonly url: string;
  /** Calls `/admin/<path>`. @throws {CommandError} when it answers with an error, in its words */
  ask(method: AdminMethod, path: string, options?: AskOptions): Promise<Record<string, unknown>>;
}

/** @returns undefined where none runs: no run file, or nobody behind it */
export async function findLiveServer(home: string): Promise<LiveServer | undefined> {
  const run = await readRunFile(home);
  if (run === undefined) return undefined;
  const url = `http://${run.host}:${run.port}`;
  const ask: LiveServer['ask'] = (method, path, options = {}) =>
    askServer({ url, run, method, path, timeoutMs: ANSWER_TIMEOUT_MS, ...options });
  const answer = await ask('GET', 'status').catch(() => undefined);
  // Another program may have the port by now.
  return answer?.['pid'] === run.pid ? { run, url, ask } : undefined;
}

interface Question extends AskOptions {
  readonly url: string;
  readonly run: RunFile;
  readonly method: AdminMethod;
  readonly path: string;
}

async function askServer(question: Question): Promise<Record<string, unknown>> {
  const { url, run, method, path, body, timeoutMs, signal } = question;
  const limits = [signal, timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)];
  const response = await fetch(`${url}/admin/${path}`, {
    method,
    headers: { [RUN_TOKEN_HEADER]: run.token, 'content-type': 'application/json' },
    signal: AbortSignal.any(limits.filter((limit) => limit !== undefined)),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer: unknown = await response.json();
  if (response.ok && isRecord(answer)) return answer;
  throw new CommandError(messageOf(answer) ?? `the server answered ${response.status} to ${method} /admin/${path}.`);
}

function messageOf(answer: unknown): string | undefined {
  const error = isRecord(answer) ? answer['error'] : undefined;
  const message = isRecord(error) ? error['message'] : undefined;
  return typeof message === 'string' ? message : undefined;
}
