/**
 * WebSockets (RFC 6455): a route that answers 101 names the route to which each message goes. A message is a request like
 * any other: it takes the way of all of them, with the address and the headers that its connection was opened with, so
 * that whoever loses a key loses the connection. Each event of the answer's stream is a message back.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { RawData, WebSocket, WebSocketServer } from 'ws';
import { remembered } from '../../core/remembered.ts';
import type { SetTimer } from '../../core/timer.ts';
import { PUBLIC_BODY_BYTES } from '../bounds.ts';
import { ANSWER_HEADERS } from '../guard.ts';
import type { Answer, Exchange, OverSocket, Pipeline } from '../pipeline/exchange.ts';
import { STATUS_CODES } from './node-http.ts';

/** Messages that wait for the answer before them. */
export const MAX_WAITING_MESSAGES = 16;
/** How often a connection is asked for a sign of life; one that gives none until the next time is cut. */
const PING_MS = 30_000;
/** The standard's own bound for a connection: https://www.openresponses.org/specification */
export const MAX_CONNECTION_MS = 60 * 60_000;

/** RFC 6455, 7.4.1. */
const CLOSE_POLICY = 1008;
const CLOSE_NOT_TEXT = 1003;
const CLOSE_NORMAL = 1000;

/** What a connection is told of its messages. */
export interface Turns {
  beginTurn(): void;
  endTurn(): void;
}

export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** What came behind the request. */
  readonly head: Buffer;
  readonly turns: Turns;
}

export type UpgradeListener = (upgrade: Upgrade) => void;

interface WebSocketOptions {
  readonly setTimer: SetTimer;
  /** Told of what goes wrong here. */
  readonly onError: (error: unknown) => void;
}

/** Brings the opening request to the pipeline, and then each message. */
export function createUpgradeListener(pipeline: Pipeline, options: WebSocketOptions): UpgradeListener {
  // To load it takes a while, and most services never need it.
  const server = remembered(async () => {
    const { WebSocketServer } = await import('ws');
    return new WebSocketServer({ noServer: true, maxPayload: PUBLIC_BODY_BYTES, perMessageDeflate: false });
  });
  return (upgrade) => {
    const exchange = new OpeningExchange(upgrade);
    open(upgrade, exchange).catch((error: unknown) => {
      options.onError(error);
      upgrade.socket.destroy();
    });
  };

  async function open(upgrade: Upgrade, exchange: OpeningExchange): Promise<void> {
    const { socket } = upgrade;
    socket.on('error', () => socket.destroy());
    const answer = await pipeline(exchange);
    const { messages } = answer;
    if (messages === undefined) return refuse(socket, answer);
    accept(await server.get(), upgrade, (webSocket) => {
      const connection = new Connection(webSocket, { ...options, ...upgrade, pipeline: messages });
      answer.cut?.addEventListener('abort', () => connection.close('The access key was revoked.'), { once: true });
    });
  }
}

function accept(server: WebSocketServer, upgrade: Upgrade, then: (webSocket: WebSocket) => void): void {
  const { request, socket, head } = upgrade;
  if (socket.destroyed) return;
  server.handleUpgrade(request, socket, head, then);
}

/** In full, and the connection ends: nothing else can come over it by now. */
async function refuse(socket: Duplex, { status, headers, body }: Answer): Promise<void> {
  const head = { ...ANSWER_HEADERS, ...headers, connection: 'close' };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n`);
  socket.end(typeof body === 'string' ? body : await firstOf(body));
}

/** An answer to a request that has not come whole is all in its first piece. */
async function firstOf(pieces: AsyncIterable<string | Uint8Array>): Promise<string | Uint8Array> {
  for await (const piece of pieces) return piece;
  return '';
}

/** Its end, told to whoever counts or works for it. */
abstract class SocketExchange implements Exchange {
  readonly id = randomUUID();
  abstract readonly method: string;
  abstract readonly url: string;
  abstract readonly headers: IncomingHttpHeaders;
  abstract readonly via: OverSocket;
  #closings: ((isAnswered: boolean) => void)[] = [];
  #isAnswered: boolean | undefined;

  get isClosed(): boolean {
    return this.#isAnswered !== undefined;
  }

  onClosed(then: (isAnswered: boolean) => void): void {
    if (this.#isAnswered === undefined) this.#closings.push(then);
    else then(this.#isAnswered);
  }

  /** A WebSocket has an end of its own. */
  onHalfClosed(): void {}

  abstract cut(): void;

  end(isAnswered: boolean): void {
    if (this.isClosed) return;
    this.#isAnswered = isAnswered;
    for (const then of this.#closings.splice(0)) then(isAnswered);
  }
}

/** The request that opens the connection. It is over when the connection is. */
class OpeningExchange extends SocketExchange {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly via: OverSocket;
  readonly #socket: Duplex;

  constructor({ request, socket }: Upgrade) {
    super();
    this.method = request.method ?? '';
    this.url = request.url ?? '';
    this.headers = request.headers;
    this.via = { kind: 'socket', request };
    this.#socket = socket;
    socket.once('close', () => this.end(true));
  }

  cut(): void {
    this.#socket.destroy();
  }
}

/** One message, as a request. */
class MessageExchange extends SocketExchange {
  readonly method = 'POST';
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly via: OverSocket;
  readonly #webSocket: WebSocket;

  constructor(body: Uint8Array, { request, webSocket }: MessageContext) {
    super();
    const {
      upgrade: _,
      connection: __,
      'content-encoding': ___,
      'transfer-encoding': ____,
      ...headers
    } = request.headers;
    this.url = request.url ?? '';
    this.headers = { ...headers, 'content-type': 'application/json', 'content-length': String(body.length) };
    this.via = { kind: 'socket', request, message: { body: [body] } };
    this.#webSocket = webSocket;
  }

  cut(): void {
    this.#webSocket.terminate();
  }
}

interface MessageContext {
  readonly request: IncomingMessage;
  readonly webSocket: WebSocket;
}

interface ConnectionContext extends WebSocketOptions, Pick<Upgrade, 'request' | 'turns'> {
  readonly pipeline: Pipeline;
}

/** Answers its messages one after the other. */
class Connection {
  readonly #webSocket: WebSocket;
  readonly #context: ConnectionContext;
  readonly #waiting: Uint8Array[] = [];
  #current: MessageExchange | undefined;
  #isAlive = true;
  #isTooOld = false;
  readonly #timers: (() => void)[] = [];

  constructor(webSocket: WebSocket, context: ConnectionContext) {
    this.#webSocket = webSocket;
    this.#context = context;
    webSocket.on('message', (data, isBinary) => this.#take(data, isBinary));
    webSocket.on('pong', () => (this.#isAlive = true));
    // What is wrong with its frames ends it, with the code that says so.
    webSocket.on('error', () => undefined);
    webSocket.on('close', () => this.#end());
    this.#ping();
    this.#timers.push(context.setTimer(MAX_CONNECTION_MS, () => this.#growOld()));
  }

  /** @param reason is told to the client */
  close(reason: string): void {
    this.#webSocket.close(CLOSE_POLICY, reason);
  }

  #take(data: RawData, isBinary: boolean): void {
    if (isBinary) return this.#webSocket.close(CLOSE_NOT_TEXT, 'Send text.');
    const bytes = bytesOf(data);
    const held = this.#waiting.reduce((sum, message) => sum + message.length, bytes.length);
    if (this.#waiting.length >= MAX_WAITING_MESSAGES || held > PUBLIC_BODY_BYTES) {
      return this.close('Too much waits to be answered. Wait for an answer before you ask on.');
    }
    this.#waiting.push(bytes);
    if (this.#current === undefined) void this.#answerAll().catch((error: unknown) => this.#fail(error));
  }

  async #answerAll(): Promise<void> {
    for (let body = this.#waiting.shift(); body !== undefined; body = this.#waiting.shift()) {
      const { turns, request, pipeline } = this.#context;
      const exchange = new MessageExchange(body, { request, webSocket: this.#webSocket });
      this.#current = exchange;
      turns.beginTurn();
      try {
        await this.#send(await pipeline(exchange), exchange);
        exchange.end(true);
      } finally {
        exchange.end(false);
        this.#current = undefined;
        turns.endTurn();
      }
      if (this.#isTooOld) return this.#sayTooOld();
    }
  }

  /** No faster than its reader. */
  async #send({ status, body }: Answer, exchange: MessageExchange): Promise<void> {
    if (typeof body === 'string') return this.#sendOne(errorEvent(status, body));
    for await (const piece of body) {
      if (exchange.isClosed) return;
      for (const event of eventsOf(String(piece))) await this.#sendOne(event);
    }
  }

  #sendOne(text: string): Promise<void> {
    return new Promise((resolve) => {
      this.#webSocket.send(text, () => resolve());
    });
  }

  #ping(): void {
    if (!this.#isAlive) return this.#webSocket.terminate();
    this.#isAlive = false;
    this.#webSocket.ping(() => undefined);
    this.#timers[0]?.();
    this.#timers[0] = this.#context.setTimer(PING_MS, () => this.#ping());
  }

  #growOld(): void {
    this.#isTooOld = true;
    if (this.#current === undefined) this.#sayTooOld();
  }

  #sayTooOld(): void {
    const message = `This connection is ${MAX_CONNECTION_MS / 60_000} minutes old. Open another one.`;
    const error = { type: 'invalid_request_error', code: 'websocket_connection_limit_reached', message, param: null };
    this.#webSocket.send(JSON.stringify({ type: 'error', status: 400, error }), () => undefined);
    this.#webSocket.close(CLOSE_NORMAL);
  }

  #fail(error: unknown): void {
    this.#context.onError(error);
    this.#webSocket.terminate();
  }

  #end(): void {
    for (const cancel of this.#timers.splice(0)) cancel();
    this.#waiting.length = 0;
    this.#current?.end(false);
  }
}

function bytesOf(data: RawData): Uint8Array {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
}

/** The standard's event for a request that failed before its stream began. @param body of the answer over HTTP */
function errorEvent(status: number, body: string): string {
  const { error }: { readonly error?: unknown } = JSON.parse(body);
  return JSON.stringify({ type: 'error', status, error });
}

const DATA = /^data: (\{.*)$/gm;

/** Of a piece of a stream of server-sent events, what they are about; not its `[DONE]`. */
function eventsOf(piece: string): string[] {
  return [...piece.matchAll(DATA)].flatMap(([, data]) => data ?? []);
}
