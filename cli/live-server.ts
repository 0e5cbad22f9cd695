/** The server that is running now, as the command line finds and asks it. */
import { readRunFile, type RunFile } from '../core/config/home.ts';
import { isRecord } from '../core/json.ts';
import { printable } from '../core/printable.ts';
import type { Method } from '../gateway/route.ts';
import { RUN_TOKEN_HEADER } from '../gateway/run-token.ts';
import { CommandError } from './command.ts';
import { readServerEvents, type ServerEvent } from './server-events.ts';

/** A server on this machine that is alive answers within this; a hung one must not hang its owner's terminal. */
const ANSWER_TIMEOUT_MS = 5000;

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
  ask(method: Method, path: string, options?: AskOptions): Promise<Record<string, unknown>>;
  /** Reads `/v1/<path>`. @throws {CommandError} as above */
  askInference(path: string): Promise<Record<string, unknown>>;
  /**
   * Posts to `/v1/<path>` and reads the event stream that answers, until it ends or `signal` fires.
   * @throws as `events`
   */
  inference(path: string, body: object, signal: AbortSignal): AsyncGenerator<ServerEvent>;
  /**
   * Reads the event stream at `/admin/<path>`, posting `body` where there is one, until the server ends it or `signal`
   * fires.
   * @throws {CommandError} when it answers with an error; {TypeError} when the connection breaks
   */
  events(path: string, signal: AbortSignal, body?: object): AsyncGenerator<ServerEvent>;
}

/** @returns undefined where none runs: no run file, or nobody behind it */
export async function findLiveServer(home: string): Promise<LiveServer | undefined> {
  const run = await readRunFile(home);
  if (run === undefined) return undefined;
  const url = `http://${run.host}:${run.port}`;
  const ask: LiveServer['ask'] = (method, path, options = {}) =>
    askServer({ url, run, method, path: `/admin/${path}`, timeoutMs: ANSWER_TIMEOUT_MS, ...options });
  const answer = await ask('GET', 'status').catch(() => undefined);
  // Another program may have the port by now.
  if (answer?.['pid'] !== run.pid) return undefined;
  return {
    run,
    url,
    ask,
    askInference: (path) => askServer({ url, run, method: 'GET', path: `/v1/${path}`, timeoutMs: ANSWER_TIMEOUT_MS }),
    inference: (path, body, signal) => readEvents({ url, run, method: 'POST', path: `/v1/${path}`, body }, signal),
    events: (path, signal, body) =>
      readEvents(
        { url, run, path: `/admin/${path}`, ...(body ? { method: 'POST', body } : { method: 'GET' }) },
        signal,
      ),
  };
}

/** @throws {CommandError} where none runs */
export async function requireLiveServer(home: string): Promise<LiveServer> {
  const server = await findLiveServer(home);
  if (server === undefined) throw new CommandError('the service is not running. "postern serve" starts it.');
  return server;
}

interface Question extends AskOptions {
  readonly url: string;
  readonly run: RunFile;
  readonly method: Method;
  readonly path: string;
}

async function askServer(question: Question): Promise<Record<string, unknown>> {
  const { signal, timeoutMs } = question;
  const limits = [signal, timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)];
  const response = await send(question, AbortSignal.any(limits.filter((limit) => limit !== undefined))).catch(
    (error: unknown) => Promise.reject(unansweredError(question, error)),
  );
  const answer = await jsonOf(response);
  if (response.ok && isRecord(answer)) return answer;
  throw answeredError(question, response, answer);
}

async function* readEvents(question: Question, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const response = await send(question, signal);
  if (!response.ok || response.body === null) throw answeredError(question, response, await jsonOf(response));
  yield* readServerEvents(response.body);
}

function send({ url, run, method, path, body }: Question, signal: AbortSignal): Promise<Response> {
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  return fetch(url + path, {
    method,
    headers: { [RUN_TOKEN_HEADER]: run.token, ...json },
    body: body === undefined ? null : JSON.stringify(body),
    signal,
  });
}

function jsonOf(response: Response): Promise<unknown> {
  return response.json().catch(() => undefined);
}

/** The service was asked, and nobody knows what became of that. */
export class UnansweredError extends CommandError {}

/** @returns what to tell the owner, or the error itself where it was asked for */
function unansweredError({ method, path, signal }: Question, error: unknown): unknown {
  if (signal?.aborted === true || !(error instanceof Error)) return error;
  const what = error.name === 'TimeoutError' ? 'did not answer in time' : 'ended before it answered';
  return new UnansweredError(
    `the service ${what} (${method} ${path}), and may have done what it was asked for all the same. Look, and try again; if it goes on, "postern stop" ends the service.`,
  );
}

/** The server's words are made for whoever asked. */
function answeredError({ method, path }: Question, { status }: Response, answer: unknown): CommandError {
  const error = isRecord(answer) ? answer['error'] : undefined;
  const message = isRecord(error) ? error['message'] : undefined;
  if (typeof message === 'string') return new CommandError(printable(message));
  return new CommandError(`the server answered ${status} to ${method} ${path}.`);
}
