/** A paired device's way to its gateway: `fetch`, sealed from end to end. */
import { PosternError } from './errors.ts';
import type { PairedDevice } from './device.ts';
import { keysOf } from './device.ts';
import { dispatch } from './dispatch.ts';
import type { HandshakeWith } from './handshake.ts';
import { handshake } from './handshake.ts';
import { pathsTo } from './http-transport.ts';
import { readRequest } from './inner-request.ts';
import type { Platform } from './platform.ts';
import { platformOf } from './platform.ts';
import { responseOf } from './response.ts';
import type { SealedCall } from './sealed-call.ts';
import { cancelCall } from './sealed-call.ts';
import { Sessions } from './sessions.ts';
import type { Transport } from './transport.ts';

export interface ConnectOptions extends Partial<Platform> {
  /** Other ways to the gateway, tried after its addresses. */
  readonly transports?: readonly Transport[];
}

export interface PosternClient {
  /**
   * The standard `fetch`, to the gateway: of the URL only path and query count. Not bound to the client, so it can be
   * handed to an SDK as it is.
   * @throws PosternError, or the signal's reason
   */
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  /** Ends all calls. */
  close(): void;
}

/** The gateway has 15 s between two signs of life; three of them lost is a dead path. */
const SILENT_FOR_MS = 45_000;

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
    shakeHands: (signal) => handshake(platform, paths, gateway, signal),
    callOperation: 'call',
    silentForMs: SILENT_FOR_MS,
  });
  const closing = new AbortController();
  return {
    fetch: (input, init) => sealedFetch(sessions, closing.signal, input, init),
    close() {
      closing.abort(new PosternError('closed'));
      sessions.close();
    },
  };
}

async function sealedFetch(
  sessions: Sessions,
  closing: AbortSignal,
  input: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const stop = new AbortController();
  const { signal } = stop;
  const calls: SealedCall[] = [];
  const onEnd = follow(stop, [init?.signal ?? (input instanceof Request ? input.signal : undefined), closing]);
  const onAbort = (): void => {
    onEnd();
    cancelAll(sessions, calls);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    signal.throwIfAborted();
    const request = await readRequest(input, init);
    const answer = await dispatch(sessions, request, calls, signal);
    return await responseOf(answer, { method: request.method, signal, stop: (reason) => stop.abort(reason), onEnd });
  } catch (error) {
    onEnd();
    throw error;
  }
}

function cancelAll(sessions: Sessions, calls: readonly SealedCall[]): void {
  for (const call of calls) if (!call.answer.isOver) void cancelCall(sessions, call);
}

/** Aborts with the first of the signals. @returns what lets go of them */
function follow(controller: AbortController, signals: readonly (AbortSignal | undefined)[]): () => void {
  const release = signals.map((signal) => {
    const onAbort = (): void => controller.abort(signal?.reason);
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    return () => signal?.removeEventListener('abort', onAbort);
  });
  return () => release.forEach((letGo) => letGo());
}
