/**
 * The listening sockets: one or two, since `localhost` is an IPv4 and an IPv6 address, with one set of limits and one
 * orderly end.
 */
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SetTimer } from '../core/timer.ts';
import { bindAll } from './bind.ts';
import { Connection, MAX_PIPELINED } from './connection.ts';
import { ConnectionPlaces } from './connection-places.ts';
import { RequestError } from './errors.ts';
import { ANSWER_HEADERS } from './guard.ts';
import { createServer, IncomingMessage as NodeMessage } from './http/node-http.ts';
import type { UpgradeListener } from './http/web-socket.ts';
import { answerMalformed } from './malformed-request.ts';
import { toOriginForm } from './request-target.ts';
import type { ConnectionCounts } from './metrics.ts';
import type { StyleHints } from './wire/dialects.ts';

/** Longer than the 60 s after which common clients and proxies give up an idle connection by themselves. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
/** For a whole request to arrive, 32 MiB over a slow network included. */
const REQUEST_TIMEOUT_MS = 300_000;
const HEADERS_TIMEOUT_MS = 30_000;
/** Of an answer, of which its client takes nothing. */
const UNREAD_ANSWER_MS = 120_000;

const TOO_MANY_WAIT = `More than ${MAX_PIPELINED} requests came on this connection ahead of their answers, so none of them was answered. Send fewer, and the next ones when those are answered.`;

export interface Listener {
  /**
   * Listens on every host, but IPv6 ones on a machine without IPv6.
   * @param options.port 0 takes a free one, the same for all hosts
   * @throws {NodeJS.ErrnoException} `EADDRINUSE`, `EACCES`, …, with the `address`
   */
  listen(options: {
    readonly hosts: readonly [string, ...string[]];
    readonly port: number;
    readonly handle: RequestListener;
    /** Absent: a request for another protocol is answered like every other. */
    readonly upgrade?: UpgradeListener | undefined;
  }): Promise<Place>;
  /** What is listened on by now. */
  place(): Place;
  counts(): ConnectionCounts;
  /** Accepts nothing more; resolves when the requests under way have been answered. Once is enough. */
  close(): Promise<void>;
  /** Cuts every connection that is left. */
  cut(): void;
}

export interface Place {
  /** 0 before it listens. */
  readonly port: number;
  readonly hosts: readonly string[];
}

export interface ListenerOptions {
  readonly setTimer: SetTimer;
  /** How many connections may be open at once. */
  readonly maxConnections?: number;
  readonly unreadAnswerMs?: number;
}

export function createListener({
  setTimer,
  maxConnections = Infinity,
  unreadAnswerMs = UNREAD_ANSWER_MS,
}: ListenerOptions): Listener {
  let servers: readonly Server[] = [];
  let place: Place = { port: 0, hosts: [] };
  let closed: Promise<void> | undefined;
  const connections = new Map<Socket, Connection>();
  const places = new ConnectionPlaces(maxConnections);
  let requests = 0;

  function connect(socket: Socket, handle: RequestListener): void {
    const connection = new Connection(socket, {
      setTimer,
      tooManyWait: () => answerMalformed(new RequestError('rate_limited', TOO_MANY_WAIT)),
      onRequest: (request, response) => {
        requests += 1;
        for (const [name, value] of Object.entries(ANSWER_HEADERS)) response.setHeader(name, value);
        // We stay with HTTP/1.1, but Node's parser drops what came in one piece with such a request.
        if (request.headers.upgrade !== undefined) response.setHeader('connection', 'close');
        handle(request, response);
      },
      onTurn: () => (requests += 1),
      onEnd: () => {
        requests -= 1;
        if (closed !== undefined) socket.destroySoon();
      },
    });
    connections.set(socket, connection);
    socket.once('close', () => connections.delete(socket));
    takePlace(socket, connection, places);
  }

  async function close(): Promise<void> {
    const ended = servers.map((server) => new Promise((resolve) => server.close(resolve)));
    for (const [socket, { isIdle }] of connections) if (isIdle) socket.destroy();
    await Promise.all(ended);
  }

  return {
    async listen({ handle, upgrade, ...options }) {
      const create = (): Server =>
        newServer(connections, unreadAnswerMs, upgrade).on('connection', (socket) => connect(socket, handle));
      const { servers: listening, port, hosts } = await bindAll(create, options);
      servers = listening;
      place = { port, hosts };
      return place;
    },
    place: () => place,
    counts: () => ({ requests, sockets: connections.size }),
    close: () => (closed ??= close()),
    cut() {
      for (const socket of connections.keys()) socket.destroy();
    },
  };
}

function takePlace(socket: Socket, connection: Connection, places: ConnectionPlaces): void {
  let leave = (): void => undefined;
  const cut = (): void => {
    leave();
    socket.destroy();
  };
  try {
    leave = places.take(socket.remoteAddress, { cut, waitsForClient: () => connection.waitsForClient });
    socket.once('close', leave);
  } catch (error) {
    connection.refuse(() => answerMalformed(error));
  }
}

function newServer(
  connections: ReadonlyMap<Socket, Connection>,
  unreadAnswerMs: number,
  upgrade: UpgradeListener | undefined,
): Server {
  const refuse = (socket: Duplex, error: unknown, asked?: IncomingMessage): void => {
    const connection = socket instanceof Socket ? connections.get(socket) : undefined;
    if (connection === undefined) socket.destroy();
    else connection.refuse((current) => answerMalformed(error, hintsOf(asked ?? current)));
  };
  const take: RequestListener = (request, response) => {
    try {
      requireHost(request);
      toOriginForm(request);
    } catch (error) {
      return refuse(request.socket, error, request);
    }
    connections.get(request.socket)?.add(request, response);
  };
  const server = createServer(
    {
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requireHostHeader: false,
      IncomingMessage: ArrivedMessage,
    },
    take,
  );
  if (upgrade !== undefined) {
    server.on('upgrade', (request, socket, head) => {
      const connection = socket instanceof Socket ? connections.get(socket) : undefined;
      // What came before it has to be answered first, and Node has let go of the connection.
      if (connection?.isIdle !== true) return socket.destroy();
      try {
        requireHost(request);
        toOriginForm(request);
      } catch (error) {
        return refuse(socket, error, request);
      }
      upgrade({ request, socket, head, turns: connection });
    });
  }
  // Node would answer all of these itself. An `Expect` that we don't know may be ignored (RFC 9110, 10.1.1).
  server.on('checkExpectation', take);
  server.on('connect', (_request, socket) => refuseTunnel(refuse, socket));
  server.on('clientError', (error, socket) => refuse(socket, error));
  // A client that half-closes waits for its answer. (Node takes it for one that left, unless this is set.)
  Object.assign(server, { httpAllowHalfOpen: true });
  // Nothing moves. That is as it should be only while an answer is being made.
  return server.setTimeout(unreadAnswerMs, (socket) => {
    if (connections.get(socket)?.isIdle !== false || socket.writableLength > 0) socket.destroy();
  });
}

/**
 * Node hands a connection over with the first request that asks for another protocol, if anybody listens for that. There is
 * one that is spoken here; with whoever asks for another we stay with HTTP (RFC 9110, 7.8).
 */
class ArrivedMessage extends NodeMessage {
  declare asksForUpgrade: unknown;

  get upgrade(): boolean {
    if (this.asksForUpgrade !== true) return false;
    return this.method === 'CONNECT' || this.headers.upgrade?.toLowerCase() === 'websocket';
  }

  set upgrade(asks: unknown) {
    this.asksForUpgrade = asks;
  }
}

function hintsOf(request: IncomingMessage | undefined): StyleHints | undefined {
  return request && { url: request.url ?? '', headers: request.headers };
}

/** RFC 9112, 3.2: HTTP/1.1 asks for one, HTTP/1.0 does not know it. @throws {RequestError} `bad_request` */
function requireHost({ headers, httpVersion }: IncomingMessage): void {
  if (headers.host === undefined && httpVersion === '1.1') {
    throw new RequestError('bad_request', 'The request has no Host header.');
  }
}

/** Of a connection that Node lets go of: nothing else listens to what happens to it. */
function refuseTunnel(refuse: (socket: Duplex, error: unknown) => void, socket: Duplex): void {
  socket.on('error', () => socket.destroy());
  refuse(socket, new RequestError('not_implemented', 'CONNECT is not available: this is no proxy.'));
}
