/**
 * A relay: it listens, greets, and passes opaque bytes from clients to the gateways that let them in. It keeps nothing
 * on disk, and it serves nothing that a browser would run.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { admitsAnybody, type Admission } from './admission.ts';
import { Arrivals } from './arrivals.ts';
import { DailyQuota } from './daily-quota.ts';
import { createDirectory, type Directory } from './directory.ts';
import { FairShare } from './fair-share.ts';
import { authenticate } from './authentication.ts';
import { DEFAULT_LIMITS, type RelayLimits } from './limits.ts';
import { networkOf } from './network-of.ts';
import type { RelayContext, RelayEvent } from './relay-context.ts';
import { answerNotFound, refuse, refuseMalformed, send } from './plain-answer.ts';
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
  /** By default its own: shared, a gateway at one node is reached from all. */
  readonly directory?: Directory;
  /** Where `/metrics` is answered, and only there: a proxy passes strangers on to where the relay listens. */
  readonly metrics?: { readonly host: string; readonly port: number } | undefined;
  readonly log?: (event: RelayEvent) => void;
  readonly now?: () => number;
  readonly elapsedMs?: () => number;
  readonly random?: () => number;
}

export interface Relay {
  readonly origin: string;
  readonly port: number;
  /** Where `/metrics` is answered, if anywhere. */
  readonly metricsPort: number | undefined;
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
  const port = await listen(server, options);
  const origin = options.origin ?? relayOriginAt(tls === undefined ? 'ws' : 'wss', options.host, port);
  const context = contextOf(options, origin);
  const figures = options.metrics && (await serveMetrics(context, options.metrics).catch(closing(server)));
  return serve({ server, port, figures }, context);
}

/** @returns the port */
async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<number> {
  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

/** Of what failed after `server` had been opened. */
function closing(server: Server): (error: unknown) => never {
  return (error) => {
    server.close();
    throw error;
  };
}

interface Listening {
  readonly server: Server;
  readonly port: number;
}

async function serveMetrics(
  { metrics }: RelayContext,
  where: { readonly host: string; readonly port: number },
): Promise<Listening> {
  const server = createServer(HTTP_LIMITS, (request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') return answerNotFound(response);
    metrics.text().then(
      (text) => send(response, { status: 200, type: metrics.contentType, body: text }),
      () => response.destroy(),
    );
  });
  refuseMalformed(server);
  return { server, port: await listen(server, where) };
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
    directory: options.directory ?? createDirectory(),
    admission: () => list.admission,
    quota: new DailyQuota({ bytesPerDay: limits.bytesPerDay, now }),
    metrics: createRelayMetrics(held),
    peers: new Set(),
    unauthenticated: new FairShare(),
    held,
    log: options.log ?? (() => undefined),
    now,
    elapsedMs: options.elapsedMs ?? (() => performance.now()),
    random: options.random ?? Math.random,
  };
}

function serve(
  { server, port, figures }: Listening & { readonly figures: Listening | undefined },
  context: RelayContext & { readonly list: MutableAdmission },
): Relay {
  server.on('request', answer);
  refuseMalformed(server);
  acceptSockets(server, context);
  const keepAlive = setInterval(() => {
    for (const peer of context.peers) peer.keepAlive();
  }, BEAT_MS);
  const close = async (): Promise<void> => {
    clearInterval(keepAlive);
    const closed = once(server, 'close');
    server.close();
    for (const peer of context.peers) peer.sendGoaway(RELAY_CODE.draining);
    server.closeAllConnections();
    figures?.server.close();
    figures?.server.closeAllConnections();
    await closed;
  };
  return {
    origin: context.origin,
    port,
    metricsPort: figures?.port,
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
  sockets.on('wsClientError', (_error, socket) => refuse(socket, 400));
  const { unauthenticatedConnections: inAll, unauthenticatedPerAddress: perAddress } = context.limits;
  const arrivals = new Arrivals({ inAll, perAddress });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
    if (!offered.includes(SUBPROTOCOL)) return refuse(socket, 400);
    const address = networkOf(request.socket.remoteAddress ?? '');
    const turnAway = (): void => refuse(socket, 503);
    const admit = (): void => {
      if (socket.destroyed) return;
      if (!makeRoom(address, context)) return turnAway();
      sockets.handleUpgrade(request, socket, head, (webSocket) => authenticate(webSocket, context, address));
    };
    arrivals.add({ address, admit, refuse: turnAway });
  });
}

/**
 * Nobody is refused for what others do at the same address: who waits there for longest gives way, and whoever has a tag
 * or a proof shows it in one round trip.
 */
function makeRoom(address: string, { unauthenticated, limits }: RelayContext): boolean {
  const { unauthenticatedConnections, unauthenticatedPerAddress } = limits;
  const isFullHere = unauthenticatedPerAddress > 0 && unauthenticated.sizeOf([address]) >= unauthenticatedPerAddress;
  if (!isFullHere && unauthenticated.size < unauthenticatedConnections) return true;
  const leaving = isFullHere ? unauthenticated.oldestIn([address]) : unauthenticated.findCrowding([address])?.holder;
  leaving?.refuse(RELAY_CODE.tooMany);
  return leaving !== undefined;
}

async function streamsEnd({ limits, metrics }: RelayContext, stopNow?: AbortSignal): Promise<void> {
  const LOOK_MS = 50;
  for (let waited = 0; waited < limits.drainMs && metrics.tally.streams > 0; waited += LOOK_MS) {
    if (stopNow?.aborted === true) return;
    await new Promise((resolve) => void setTimeout(resolve, LOOK_MS));
  }
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  if (request.method !== 'GET' || request.url !== '/healthz') return answerNotFound(response);
  send(response, { status: 200, type: 'application/json', body: '{"status":"ok"}' });
}
