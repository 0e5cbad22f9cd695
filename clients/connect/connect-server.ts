/**
 * A loopback server on a second laptop that carries every route home through the sealed channel, so that any client
 * there uses the models at home as if they were on that laptop. It knows no routes: what is asked for, and whether it may
 * be, is decided at home, for the paired device. It decides who may ask (`web-guard.ts`) and keeps nothing.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { REQUEST_HEADERS } from '../../channel/request-bounds.ts';
import { createListener, type Listener, type ListenerOptions } from '../../gateway/listener.ts';
import { whenHalfClosed } from '../../gateway/when-closed.ts';
import type { StyleHints } from '../../gateway/wire/dialects.ts';
import type { PosternClient } from '../sdk/index.ts';
import { sendAnswer } from './answer.ts';
import { encodeFailure, encodeLastWords, failureOf, RequestRefused } from './failure.ts';
import { endAfterRequest, readBody } from './request-body.ts';
import { admit, ALLOW, METHODS, preflightHeaders, type Admitting } from './web-guard.ts';

export interface ConnectServerOptions extends Admitting, Pick<ListenerOptions, 'setTimer'> {
  /** 0 takes a free one. */
  readonly port: number;
  readonly fetch: PosternClient['fetch'];
  /** For `GET /`. */
  readonly gatewayName: string;
  /** Told of each call home how it ended: without an error, if home answered it. */
  readonly onOutcome: (error?: unknown) => void;
}

/** As many as the gateway itself takes. Their bodies are in memory until they are sealed. */
const MAX_REQUESTS = 64;

/** Only path and query of it are looked at. With an origin in front, a path such as `//host/x` stays a path. */
const ORIGIN = 'http://gateway.invalid';

export interface ConnectServer extends Pick<Listener, 'close' | 'cut'> {
  readonly port: number;
}

/**
 * Listens on both loopback addresses, or not at all.
 * @throws {NodeJS.ErrnoException} `EADDRINUSE`, `EACCES`, …, with the `address`
 */
export async function startConnectServer(options: ConnectServerOptions): Promise<ConnectServer> {
  const listener = createListener({ setTimer: options.setTimer });
  const handle: RequestListener = (request, response) => {
    // Such a client counts as gone, so that home stops at once.
    whenHalfClosed(response, () => void response.destroy());
    const isFull = listener.counts().requests > MAX_REQUESTS;
    answer(request, response, { ...options, isFull }).catch((error: unknown) =>
      sendFailure(error, request, response).catch(() => response.destroy()),
    );
  };
  const { port } = await listener.listen({ hosts: ['127.0.0.1', '::1'], port: options.port, handle });
  return { port, close: () => listener.close(), cut: () => listener.cut() };
}

interface Answering extends ConnectServerOptions {
  readonly isFull: boolean;
}

async function answer(request: IncomingMessage, response: ServerResponse, options: Answering): Promise<void> {
  const { method = '', url = '' } = request;
  const cors = await admit(request, options);
  // What is told only once, that the client has left, would be waited for in vain from here on.
  if (request.socket.destroyed) return;
  // For whatever is answered from here on.
  for (const [name, value] of Object.entries(cors)) response.setHeader(name, value);
  if (method === 'OPTIONS') return void response.writeHead(204, preflightHeaders(request, cors)).end();
  if (!METHODS.some((known) => known === method)) {
    throw new RequestRefused('method_not_allowed', `This address takes ${ALLOW}.`, { allow: ALLOW });
  }
  if (!url.startsWith('/')) throw new RequestRefused('bad_request', 'The request names no path.');
  if (options.isFull) throw new RequestRefused('overloaded', 'Too many requests are under way. Ask again in a moment.');
  if (isRead(method) && /^\/(?:\?|$)/.test(url)) return sendWhatItIs(response, options.gatewayName);
  await carryHome(request, response, options);
}

/** RFC 9110 §9.3.1: a body that comes with these means nothing. */
function isRead(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD';
}

function sendWhatItIs(response: ServerResponse, gatewayName: string): void {
  const text = `Postern connect is running: what is asked here is answered by "${gatewayName}", through the sealed channel.\n`;
  response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** The client's leaving ends the fetch, and that tells home to stop. */
async function carryHome(
  request: IncomingMessage,
  response: ServerResponse,
  options: ConnectServerOptions,
): Promise<void> {
  const leaving = new AbortController();
  response.once('close', () => leaving.abort());
  const body = await readBody(request);
  const { signal: gone } = leaving;
  try {
    const answered = await options.fetch(ORIGIN + (request.url ?? ''), {
      method: request.method ?? '',
      headers: sentHeaders(request.headers),
      ...(isRead(request.method) || body.length === 0 ? {} : { body }),
      signal: gone,
    });
    const lastWords = (error: unknown, type: string) =>
      encodeLastWords(failureOf(error), { ...hintsOf(request), type });
    await sendAnswer(response, answered, { gone, lastWords });
    options.onOutcome();
  } catch (error) {
    if (gone.aborted) return;
    options.onOutcome(error);
    throw error;
  }
}

function hintsOf({ url = '', headers }: IncomingMessage): StyleHints {
  return { url, headers };
}

function sentHeaders(headers: IncomingMessage['headers']): [string, string][] {
  // The rest of a client's headers is about this connection, or is a key that home takes for none.
  return [...REQUEST_HEADERS].flatMap((name): [string, string][] => {
    const value = headers[name];
    return value === undefined ? [] : [[name, String(value)]];
  });
}

/** An answer that had begun has said what it could. */
async function sendFailure(error: unknown, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (response.headersSent || response.destroyed) return;
  const failure = failureOf(error);
  const text = JSON.stringify(encodeFailure(failure, hintsOf(request)));
  response.writeHead(failure.status, {
    ...failure.headers,
    // What of the body may still come would be taken for the next request, or waited for in vain.
    ...(request.complete ? {} : { connection: 'close' }),
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  });
  response.write(text);
  await endAfterRequest(response, request);
}
