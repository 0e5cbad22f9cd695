/** A paired device's way to its gateway: `fetch`, sealed from end to end. */
import { PosternError } from './errors.ts';
import type { PairedDevice } from './device.ts';
import { keysOf } from './device.ts';
import { dispatch } from './dispatch.ts';
import type { HandshakeWith } from './handshake.ts';
import { handshake } from './handshake.ts';
import { PathUpgrade } from './path-upgrade.ts';
import { pathsTo } from './http-transport.ts';
import { readRequest } from './inner-request.ts';
import type { Platform } from './platform.ts';
import { pause, platformOf } from './platform.ts';
import { responseOf } from './response.ts';
import type { SealedCall } from './sealed-call.ts';
import { cancelCall } from './sealed-call.ts';
import { Sessions } from './sessions.ts';
import type { PathDescription, Transport } from './transport.ts';
import { Endpoints } from './endpoints.ts';

export interface ConnectOptions extends Partial<Platform> {
  /** Other ways to the gateway, tried after its addresses, and closed with the client. See `relay.ts`. */
  readonly transports?: readonly Transport[];
  /**
   * Called when home is found elsewhere than the device's record says, with a record to be stored in its place; the
   * client that was made of it goes on with what it has. Asked for after the first answer, and once an hour.
   */
  readonly onEndpointsChanged?: (device: PairedDevice) => void;
}

export interface PosternClient {
  /**
   * The standard `fetch`, to the gateway: of the URL only path and query count. Not bound to the client, so it can be
   * handed to an SDK as it is.
   * @throws PosternError, or the signal's reason
   */
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  /** The way that was found last; `undefined` before the first, and for a transport that does not say what it is. */
  readonly path: PathDescription | undefined;
  /** Ends all calls, and what is kept open between them. */
  close(): void;
}

/** The gateway has 15 s between two signs of life; three of them lost is a dead path. */
const SILENT_FOR_MS = 45_000;
/** How long closing waits until the gateway has heard which calls are over. */
const CLOSE_GRACE_MS = 1000;

/** Nothing is sent before the first call. @throws RangeError if the device's record is damaged */
export function connect(device: PairedDevice, options: ConnectOptions = {}): PosternClient {
  const platform = platformOf(options);
  const paths = pathsTo(device.urls, platform.fetch, options.transports);
  const gateway: HandshakeWith = {
    operation: 'session',
    envelope: (noise) => ({ kind: 'sessionRequest', noise }),
    purpose: { kind: 'session' },
    ...keysOf(platform.crypto, device),
  };
  const sessions = new Sessions({
    platform,
    paths,
    handshake: async (signal) => {
      const { session, transport } = await handshake(platform, paths.toTry, gateway, signal);
      paths.worked(transport);
      return session;
    },
    callOperation: 'call',
    silentForMs: SILENT_FOR_MS,
  });
  const closing = new AbortController();
  const pathUpgrade = new PathUpgrade({
    paths,
    now: platform.now,
    tryNearer: async (nearer) => {
      const { session, transport } = await handshake(platform, nearer, gateway, closing.signal);
      sessions.adopt(session);
      paths.worked(transport);
    },
  });
  const pendingCancels = new Set<Promise<void>>();
  const running = new Set<AbortController>();
  const client: Client = { sessions, pathUpgrade, pendingCancels, running, closing: closing.signal };
  const { onEndpointsChanged } = options;
  if (onEndpointsChanged !== undefined) {
    const ask = (path: string): Promise<Response> => sealedFetch(client, path);
    client.endpoints = new Endpoints({ device, now: platform.now, ask, path: () => paths.used, onEndpointsChanged });
  }
  return {
    fetch: (input, init) => sealedFetch(client, input, init),
    get path() {
      return paths.used;
    },
    close() {
      const reason = new PosternError('closed');
      closing.abort(reason);
      // Each leaves the set as it stops.
      for (const stop of running) stop.abort(reason);
      sessions.close();
      if (pendingCancels.size === 0) return paths.close();
      const last = pause(platform.setTimer, CLOSE_GRACE_MS, new AbortController().signal);
      void Promise.race([Promise.all(pendingCancels), last]).finally(() => paths.close());
    },
  };
}

interface Client {
  readonly sessions: Sessions;
  readonly pathUpgrade: PathUpgrade;
  endpoints?: Endpoints;
  /** The gateway is being told that these calls are over. */
  readonly pendingCancels: Set<Promise<void>>;
  /** What stops the calls that have not ended. No listener of `closing`, of which there would be too many. */
  readonly running: Set<AbortController>;
  readonly closing: AbortSignal;
}

async function sealedFetch(client: Client, input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const { sessions, running, closing } = client;
  const stop = new AbortController();
  const { signal } = stop;
  const calls: SealedCall[] = [];
  const letGo = follow(stop, init?.signal ?? (input instanceof Request ? input.signal : undefined));
  const onEnd = (): void => {
    letGo();
    running.delete(stop);
  };
  running.add(stop);
  const onAbort = (): void => {
    onEnd();
    cancelAll(client, calls);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    closing.throwIfAborted();
    signal.throwIfAborted();
    const request = await readRequest(input, init);
    const answer = await dispatch(sessions, request, calls, signal);
    client.pathUpgrade.consider();
    client.endpoints?.consider();
    return await responseOf(answer, { method: request.method, signal, stop: (reason) => stop.abort(reason), onEnd });
  } catch (error) {
    onEnd();
    throw error;
  }
}

function cancelAll({ sessions, pendingCancels }: Client, calls: readonly SealedCall[]): void {
  for (const call of calls) {
    if (call.answer.isOver) continue;
    const cancelled = cancelCall(sessions, call).finally(() => pendingCancels.delete(cancelled));
    pendingCancels.add(cancelled);
  }
}

/** Aborts with the signal. @returns what lets go of it */
function follow(controller: AbortController, signal: AbortSignal | null | undefined): () => void {
  const onAbort = (): void => controller.abort(signal?.reason);
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener('abort', onAbort, { once: true });
  return () => signal?.removeEventListener('abort', onAbort);
}
