/**
 * The channel through a relay: a stream for each exchange, over one connection that all of them share. Nothing that the
 * relay says is proof of anything, so whatever goes wrong here is a path that broke.
 */
import { RELAY_CODE, RelayError, wordsOf } from '../../relay/wire/codes.ts';
import type { ClientStream } from '../../relay/wire/join-relay.ts';
import type { PathHint } from './errors.ts';
import { PathError, TransportError } from './errors.ts';
import type { RelayRoute } from './relay-connection.ts';
import { RelayConnection } from './relay-connection.ts';
import type { PathDescription, Transport } from './transport.ts';

export function relayTransport(route: RelayRoute): Transport {
  return new RelayTransport(route);
}

/** A connection that was there before may have ended, or be about to: then there is another. */
const JOININGS = 2;
/** Between joinings that fail. By default a relay takes 20 connections a minute from one address. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 4000;

class RelayTransport implements Transport {
  readonly path: PathDescription;
  readonly #route: RelayRoute;
  #connection: RelayConnection | undefined;
  #refusal: RelayRefusal | undefined;

  constructor(route: RelayRoute) {
    this.#route = route;
    this.path = { kind: 'relay', url: route.url };
  }

  async exchange(_: unknown, body: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const exchange = await this.#begin(body, signal);
    return exchange.answer();
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
    this.#refusal = undefined;
  }

  /** @throws TransportError for what was never sent, or the signal's reason */
  async #begin(body: Uint8Array, signal: AbortSignal): Promise<StreamExchange> {
    for (let joinings = 1; ; joinings++) {
      const connection = this.#connect();
      const wasThere = connection.hasJoined;
      connection.hold();
      try {
        // The second byte of an envelope says what it is, and is all that a relay is told.
        const stream = await connection.open(body[1] ?? 0, signal);
        this.#refusal = undefined;
        return new StreamExchange(connection, stream, body, signal);
      } catch (error) {
        leaveIfSilent(connection, signal);
        connection.release();
        signal.throwIfAborted();
        if (!connection.hasJoined) throw this.#refused(connection, failureOf(error, true));
        if (!wasThere || !connection.isOver || joinings === JOININGS) throw failureOf(error, true);
      }
    }
  }

  /** Remembers that it could not be joined: a relay counts how often it is asked, and answers no more if it is too often. */
  #refused(connection: RelayConnection, failure: TransportError): TransportError {
    if (this.#connection !== connection) return failure;
    this.#connection = undefined;
    const pauseMs = Math.min(2 * (this.#refusal?.pauseMs ?? FIRST_PAUSE_MS / 2), LONGEST_PAUSE_MS);
    this.#refusal = { failure, pauseMs, atMs: this.#route.platform.now() };
    return failure;
  }

  #connect(): RelayConnection {
    if (this.#connection === undefined || this.#connection.isOver) {
      const failure = this.#recentFailure();
      if (failure !== undefined) throw failure;
      try {
        this.#connection = new RelayConnection(this.#route);
      } catch (error) {
        throw failureOf(error, true);
      }
    }
    return this.#connection;
  }

  /** The clock may have been set back. */
  #recentFailure(): TransportError | undefined {
    if (this.#refusal === undefined) return undefined;
    const { failure, atMs, pauseMs } = this.#refusal;
    const sinceMs = this.#route.platform.now() - atMs;
    return sinceMs >= 0 && sinceMs < pauseMs ? failure : undefined;
  }
}

/** What came of it when it was to be joined last. */
interface RelayRefusal {
  readonly failure: TransportError;
  readonly atMs: number;
  readonly pauseMs: number;
}

/** One that is waited for in vain, without a frame of any kind, may be dead without anybody having been told. */
function leaveIfSilent(connection: RelayConnection, signal: AbortSignal, framesBefore = 0): void {
  const isSilent = signal.aborted && signal.reason instanceof PathError;
  if (isSilent && connection.framesHeard === framesBefore) connection.retire();
}

/** A stream from its opening to its end. Whoever stops reading says so by the signal. */
class StreamExchange {
  readonly #connection: RelayConnection;
  readonly #stream: ClientStream;
  readonly #signal: AbortSignal;
  readonly #pieces: AsyncIterator<Uint8Array>;
  readonly #framesBefore: number;
  #isOver = false;

  constructor(connection: RelayConnection, stream: ClientStream, body: Uint8Array, signal: AbortSignal) {
    this.#connection = connection;
    this.#stream = stream;
    this.#signal = signal;
    this.#framesBefore = connection.framesHeard;
    this.#pieces = stream.answer[Symbol.asyncIterator]();
    signal.addEventListener('abort', this.#stop, { once: true });
    if (signal.aborted) this.#stop();
    // It fails with the answer, which says so.
    else this.#send(body).catch(() => undefined);
  }

  /** Once it has begun. It is read no faster than it is taken, and that is what the other side is granted. */
  async answer(): Promise<ReadableStream<Uint8Array>> {
    let first: Uint8Array | undefined = await this.#next();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const piece = first ?? (await this.#next());
          first = undefined;
          if (piece === undefined) controller.close();
          else controller.enqueue(new Uint8Array(piece));
        },
        cancel: () => this.#stop(),
      },
      { highWaterMark: 0 },
    );
  }

  async #send(body: Uint8Array): Promise<void> {
    await this.#stream.write(body);
    this.#stream.end();
  }

  /** `undefined` at the end. @throws TransportError */
  async #next(): Promise<Uint8Array | undefined> {
    try {
      const { done, value } = await this.#pieces.next();
      if (done !== true) return value;
    } catch (error) {
      this.#end();
      throw failureOf(error, false);
    }
    this.#end();
    return undefined;
  }

  readonly #stop = (): void => {
    leaveIfSilent(this.#connection, this.#signal, this.#framesBefore);
    this.#end();
  };

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#signal.removeEventListener('abort', this.#stop);
    // Of one that has ended by itself nothing is left to reset.
    this.#stream.reset();
    this.#connection.ended();
    this.#connection.release();
  }
}

const HINTS: ReadonlyMap<number, PathHint> = new Map([
  [RELAY_CODE.offline, 'gateway_away'],
  [RELAY_CODE.notAllowed, 'relay_refused'],
  [RELAY_CODE.revoked, 'relay_refused'],
  [RELAY_CODE.tooMany, 'relay_busy'],
  [RELAY_CODE.rate, 'relay_busy'],
  [RELAY_CODE.quota, 'relay_busy'],
]);

function failureOf(cause: unknown, wasNeverSent: boolean): TransportError {
  // A connection that was lost on this side has a relay's code too, and words of its own.
  const isRelaysWord = cause instanceof RelayError && cause.message === wordsOf(cause.code);
  return new TransportError({ wasNeverSent, hint: isRelaysWord ? HINTS.get(cause.code) : undefined, cause });
}
