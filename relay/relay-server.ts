/**
 * A relay: it listens, greets, and passes opaque bytes from clients to the gateways that let them in. It keeps nothing
 * on disk, and it serves nothing that a browser would run.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { AddressLimit } from './address-limit.ts';
import { admitsAnybody, type Admission } from './admission.ts';
import { DailyQuota } from './daily-quota.ts';
import { createDirectory } from './directory.ts';
import { greet } from './greeting.ts';
import { DEFAULT_LIMITS, type RelayLimits } from './limits.ts';
import type { RelayContext, RelayEvent } from './relay-context.ts';
import { createRelayMetrics } from './relay-metrics.ts';
import { RELAY_CODE } from './wire/codes.ts';
import { MAX_FRAME_BYTES, SUBPROTOCOL } from './wire/frame.ts';
import { relayOriginAt } from './wire/registration.ts';

export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

export interface RelayOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** What gateways sign for; by default what is listened on. @see isRelayOrigin */
  readonly origin?: string | undefined;
  /** PEM. Without it the relay speaks plain HTTP: for a proxy in front of it that has the certificate. */
  readonly tls?: TlsFiles | undefined;
  readonly admission?: Admission;
  readonly limits?: RelayLimits;
  /** Whether `/metrics` is answered to others than this machine. */
  readonly hasOpenMetrics?: boolean;
  readonly log?: (event: RelayEvent) => void;
  readonly now?: () => number;
  readonly elapsedMs?: () => number;
  readonly random?: () => number;
}

export interface Relay {
  readonly origin: string;
  readonly port: number;
  /** From now on; those who are connected stay. */
  setAdmission(admission: Admission): void;
  /** For new connections. @throws if it is no certificate */
  setTls(tls: TlsFiles): void;
  /** Bytes held for those who do not read. */
  heldBytes(): number;
  /** Sends everybody away, waits for running streams as long as `drainMs` or until `now` fires, and ends. */
  drain(now?: AbortSignal): Promise<void>;
  /** Ends at once. */
  close(): Promise<void>;
}

/** How often it is looked who is dead or has stalled. */
const BEAT_MS = 1_000;
const HTTP_LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 8 * 1024,
};

/** Resolves when it listens. @throws if the address is taken */
export async function startRelay(options: RelayOptions): Promise<Relay> {
  const { tls } = options;
  const server = tls === undefined ? createServer(HTTP_LIMITS) : createTlsServer({ ...HTTP_LIMITS, ...tls });
  server.listen(options.port, options.host);
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.port;
  const origin = options.origin ?? relayOriginAt(tls === undefined ? 'ws' : 'wss', options.host, port);
  return serve(server, port, contextOf(options, origin), options);
}

interface MutableAdmission {
  admission: Admission;
}

function contextOf(options: RelayOptions, origin: string): RelayContext & { readonly list: MutableAdmission } {
  const limits = options.limits ?? DEFAULT_LIMITS;
  const now = options.now ?? Date.now;
  const held = { bytes: 0 };
  const list = { admission: options.admission ?? admitsAnybody };
  return {
    origin,
    limits,
    list,
    directory: createDirectory(),
    admission: () => list.admission,
    quota: new DailyQuota({ bytesPerDay: limits.bytesPerDay, now }),
    metrics: createRelayMetrics(held),
    peers: new Set(),
    held,
    log: options.log ?? (() => undefined),
    now,
    elapsedMs: options.elapsedMs ?? (() => performance.now()),
    random: options.random ?? Math.random,
  };
}

function serve(
  server: Server,
  port: number,
  context: RelayContext & { readonly list: MutableAdmission },
  { hasOpenMetrics = false }: RelayOptions,
): Relay {
  server.on('request', (request, response) => void answer(request, response, { context, hasOpenMetrics }));
  acceptSockets(server, context);
  const beat = setInterval(() => {
    for (const peer of context.peers) peer.beat();
  }, BEAT_MS);
  const close = async (): Promise<void> => {
    clearInterval(beat);
    const closed = once(server, 'close');
    server.close();
    for (const peer of context.peers) peer.sendAway(RELAY_CODE.draining);
    server.closeAllConnections();
    await closed;
  };
  return {
    origin: context.origin,
    port,
    setAdmission: (admission) => {
      context.list.admission = admission;
    },
    setTls: (tls) => {
      if ('setSecureContext' in server && typeof server.setSecureContext === 'function') server.setSecureContext(tls);
    },
    heldBytes: () => context.held.bytes,
    drain: async (stopNow) => {
      server.close();
      for (const peer of context.peers) peer.announceDrain();
      await streamsEnd(context, stopNow);
      await close();
    },
    close,
  };
}

function acceptSockets(server: Server, context: RelayContext): void {
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
    autoPong: false,
    handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
  });
  const { limits, elapsedMs, metrics } = context;
  const addresses = new AddressLimit({ perMinute: limits.connectionsPerMinute, elapsedMs });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
    if (!offered.includes(SUBPROTOCOL)) return refuse(socket, '400 Bad Request');
    if (!addresses.admit(request.socket.remoteAddress ?? '')) return refuse(socket, '429 Too Many Requests');
    if (metrics.tally.unnamed >= limits.unnamedConnections) return refuse(socket, '503 Service Unavailable');
    sockets.handleUpgrade(request, socket, head, (webSocket) => greet(webSocket, context));
  });
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy());
}

async function streamsEnd({ limits, metrics }: RelayContext, stopNow?: AbortSignal): Promise<void> {
  const LOOK_MS = 50;
  for (let waited = 0; waited < limits.drainMs && metrics.tally.streams > 0; waited += LOOK_MS) {
    if (stopNow?.aborted === true) return;
    await new Promise((resolve) => void setTimeout(resolve, LOOK_MS));
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { context, hasOpenMetrics }: { context: RelayContext; hasOpenMetrics: boolean },
): Promise<void> {
  const send = (status: number, type: string, body: string): void => {
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
  };
  if (request.method === 'GET' && request.url === '/healthz') return send(200, 'application/json', '{"status":"ok"}');
  const mayReadMetrics = hasOpenMetrics || isFromThisMachine(request);
  if (request.method === 'GET' && request.url === '/metrics' && mayReadMetrics)
    return send(200, context.metrics.contentType, await context.metrics.text());
  return send(404, 'application/json', '{"error":"not_found"}');
}

/** A proxy on this machine speaks for others, and says so. */
function isFromThisMachine({ socket, headers }: IncomingMessage): boolean {
  const isLoopback = /^(::ffff:)?127\.|^::1$/u.test(socket.remoteAddress ?? '');
  return isLoopback && headers['x-forwarded-for'] === undefined && headers.forwarded === undefined;
}
