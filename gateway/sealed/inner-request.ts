/**
 * Requests that came inside a sealed call. They go through the same app in process, so that every rule holds once; their
 * caller goes beside them, never in a header, since an injected request looks as if it came from this machine.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { HeaderList, RequestHead } from '../../channel/head.ts';
import type { Caller } from '../caller.ts';
import { RequestError } from '../errors.ts';

export interface InnerRequest extends Pick<RequestHead, 'method' | 'path' | 'query' | 'headers'> {
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export interface InnerAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  /** `null` for an answer that is made as it goes. */
  readonly bodyBytes: number | null;
  readonly body: AsyncIterable<Uint8Array>;
}

/** @throws {RequestError} `bad_request` for what no HTTP request could ask for */
export type RunInner = (request: InnerRequest, caller: Caller) => Promise<InnerAnswer>;

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'] as const);
type InnerMethod = typeof METHODS extends Set<infer Method> ? Method : never;

/** What a device may say about its request. Credentials are not among it: the session is the device's. */
const REQUEST_HEADERS = new Set([
  'accept',
  'content-type',
  'range',
  'last-event-id',
  'idempotency-key',
  'x-service-agent-id',
  'anthropic-version',
  'anthropic-beta',
  'mcp-session-id',
  'mcp-protocol-version',
]);

/** Between the app and its own socket, or for a browser that asked over it. */
const UNSEALED_HEADERS = new Set(['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'date', 'vary']);

/** Nothing that a URL parser would take for a host, a query or a fragment. */
const PATH = /^\/(?!\/)[\x21\x24-\x3e\x40-\x5b\x5d-\x7e]*$/u;
const QUERY = /^[\x21\x22\x24-\x7e]*$/u;

interface InnerContext {
  readonly caller: Caller;
  readonly signal: AbortSignal;
}

const contexts = new AsyncLocalStorage<InnerContext>();

/**
 * Whose request the app sees at the moment, if it came from inside. Its response is closed when nobody wants it any more:
 * the framework's own signal is heard only until the request's body was read.
 */
export function enterInner(response: ServerResponse): Caller | undefined {
  const context = contexts.getStore();
  if (context === undefined) return undefined;
  const { caller, signal } = context;
  const close = (): void => void response.destroy();
  if (signal.aborted) close();
  signal.addEventListener('abort', close, { once: true });
  response.once('close', () => signal.removeEventListener('abort', close));
  return caller;
}

export function createInnerRunner(app: Pick<FastifyInstance, 'inject'>): RunInner {
  return async ({ method, path, query, headers, body, signal }, caller) => {
    if (!PATH.test(path) || !QUERY.test(query ?? '')) {
      throw new RequestError('bad_request', 'The address is malformed.');
    }
    const options = {
      method: methodOf(method),
      url: query === undefined ? path : `${path}?${query}`,
      headers: { 'user-agent': 'sealed', ...Object.fromEntries(allowedHeaders(headers)) },
      ...(body.length === 0 ? {} : { payload: Buffer.from(body.buffer, body.byteOffset, body.length) }),
      payloadAsStream: true as const,
    };
    // The `await` belongs inside: the request begins when it is awaited, and the caller is there only in here.
    const answer = await contexts.run({ caller, signal }, async () => await app.inject(options));
    const bodyBytes = answer.headers['content-length'];
    return {
      status: answer.statusCode,
      headers: answerHeaders(answer.headers),
      bodyBytes: bodyBytes === undefined ? null : Number(bodyBytes),
      body: answer.stream(),
    };
  };
}

/** The headers that count of those that a device sent. */
export function allowedHeaders(headers: HeaderList): HeaderList {
  return headers
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name, value]) => REQUEST_HEADERS.has(name) && /^[\t\x20-\x7e\x80-\xff]*$/u.test(value));
}

function methodOf(method: string): InnerMethod {
  for (const known of METHODS) if (known === method) return known;
  throw new RequestError('bad_request', 'There is no such method.');
}

function answerHeaders(headers: Readonly<Record<string, string | string[] | number | undefined>>): HeaderList {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (value === undefined || UNSEALED_HEADERS.has(name) || name.startsWith('access-control-')) return [];
    return [value].flat().map((one) => [name, String(one)] as const);
  });
}
