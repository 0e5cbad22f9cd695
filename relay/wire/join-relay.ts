/**
 * The joining side: a device's way through a relay to a gateway that let it in. It runs in a browser as it does in Node;
 * the WebSocket is handed to it. What comes through is only as good as the sealed channel inside it: nothing that a
 * relay says is proof of anything.
 */
import { RELAY_CODE, RelayError } from './codes.ts';
import { decodeFrame, encodeFrame, SUBPROTOCOL, type Frame } from './frame.ts';
import { startHeartbeat, type Clock, type Heartbeat } from './heartbeat.ts';
import { StreamSet, type PeerStream } from './stream-set.ts';

/** The part of a browser's WebSocket that is used; the one of `ws` has it too. */
export interface WebSocketLike {
  binaryType: string;
  readonly bufferedAmount: number;
  send(bytes: Uint8Array<ArrayBuffer>): void;
  close(): void;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: 'error' | 'close', listener: () => void): void;
}

export interface JoinOptions extends Clock {
  readonly webSocket: (url: string, protocol: string) => WebSocketLike;
  /** `wss://host[:port]`, or with a path where the relay is behind one. */
  readonly url: string;
  /** 15 bytes, of the gateway. */
  readonly routingId: Uint8Array;
  /** 16 bytes: the tag of this day, or of an invite. */
  readonly tag: Uint8Array;
  /** How long joining may take. */
  readonly timeoutMs?: number;
}

export interface JoinedRelay {
  /** Begins a stream; `op` is the second byte of the envelope that goes over it. @throws RelayError */
  open(op: number): ClientStream;
  /** Resolves when the connection has ended, with the reason. */
  readonly closed: Promise<RelayError>;
  close(): void;
}

export interface ClientStream {
  /** The request. Waits for credit; one call at a time. @throws RelayError */
  write(bytes: Uint8Array): Promise<void>;
  /** The request is complete. */
  end(): void;
  /** Ends when the gateway is done. @throws RelayError */
  readonly answer: AsyncIterable<Uint8Array>;
  /** Gives the stream up, in both directions. */
  reset(): void;
}

const JOIN_TIMEOUT_MS = 15_000;
/** A browser does not say when a socket has sent what it was given: it is looked at that often. */
const LOOK_AT_SOCKET_MS = 20;

/** @throws RelayError if it can't be joined, with the relay's code where it gave one */
export function joinRelay(options: JoinOptions): Promise<JoinedRelay> {
  return new Joining(options).joined;
}

class Joining {
  readonly joined: Promise<JoinedRelay>;
  readonly #options: JoinOptions;
  readonly #socket: WebSocketLike;
  readonly #closed: Promise<RelayError>;
  #resolveJoined: (joined: JoinedRelay) => void = () => undefined;
  #rejectJoined: (error: RelayError) => void = () => undefined;
  #resolveClosed: (error: RelayError) => void = () => undefined;
  #cancelTimeout: () => void;
  #cancelLook: (() => void) | undefined;
  #heartbeat: Heartbeat | undefined;
  #streams: StreamSet | undefined;
  #hasJoinBeenSent = false;
  #leaving: RelayError | undefined;
  #error: RelayError | undefined;

  constructor(options: JoinOptions) {
    this.#options = options;
    this.joined = new Promise((resolve, reject) => {
      [this.#resolveJoined, this.#rejectJoined] = [resolve, reject];
    });
    this.#closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#cancelTimeout = options.setTimer(options.timeoutMs ?? JOIN_TIMEOUT_MS, () =>
      this.#fail(new RelayError(RELAY_CODE.timeout)),
    );
    this.#socket = options.webSocket(options.url, SUBPROTOCOL);
    this.#socket.binaryType = 'arraybuffer';
    this.#socket.addEventListener('message', ({ data }) => this.#message(data));
    const lost = (): void => this.#fail(new RelayError(RELAY_CODE.offline, 'the connection to the relay was lost'));
    this.#socket.addEventListener('error', lost);
    this.#socket.addEventListener('close', lost);
  }

  #message(data: unknown): void {
    if (this.#error !== undefined) return;
    try {
      if (!(data instanceof ArrayBuffer)) throw new RelayError(RELAY_CODE.protocol);
      this.#heartbeat?.heard();
      this.#accept(decodeFrame(new Uint8Array(data)));
    } catch (error) {
      this.#fail(error instanceof RelayError ? error : new RelayError(RELAY_CODE.internal));
    }
  }

  #accept(frame: Frame): void {
    switch (frame.type) {
      case 'hello':
        return this.#join();
      case 'joined':
        return this.#begin(frame);
      case 'ping':
        return this.#send(encodeFrame({ type: 'pong', bytes: frame.bytes }));
      case 'pong':
        return;
      case 'error':
        throw new RelayError(frame.code);
      case 'goaway':
        // What runs may go on until the relay closes; nothing new begins.
        this.#leaving = new RelayError(frame.code);
        return;
      case 'data':
      case 'window':
      case 'reset':
        if (this.#streams === undefined) throw new RelayError(RELAY_CODE.protocol);
        return this.#streams.accept(frame);
      default:
        throw new RelayError(RELAY_CODE.protocol);
    }
  }

  #join(): void {
    if (this.#hasJoinBeenSent) throw new RelayError(RELAY_CODE.protocol);
    this.#hasJoinBeenSent = true;
    const { routingId, tag } = this.#options;
    this.#send(encodeFrame({ type: 'join', routingId, tag }));
  }

  #begin(windows: Extract<Frame, { type: 'joined' }>): void {
    if (!this.#hasJoinBeenSent || this.#streams !== undefined) throw new RelayError(RELAY_CODE.protocol);
    this.#cancelTimeout();
    const sink = { send: (frame: Uint8Array) => this.#send(frame), buffered: () => this.#socket.bufferedAmount };
    const streams = new StreamSet({ sink, windows });
    this.#streams = streams;
    this.#heartbeat = startHeartbeat(this.#options, {
      ping: () => this.#send(encodeFrame({ type: 'ping', bytes: new Uint8Array(8) })),
      dead: () => this.#fail(new RelayError(RELAY_CODE.timeout)),
    });
    this.#resolveJoined({
      open: (op) => {
        if (this.#leaving !== undefined) throw this.#leaving;
        return streamView(streams.open(op));
      },
      closed: this.#closed,
      close: () => this.#fail(new RelayError(RELAY_CODE.offline, 'the connection was closed from here')),
    });
  }

  #send(frame: Uint8Array): void {
    this.#socket.send(new Uint8Array(frame));
    if (this.#cancelLook === undefined && this.#socket.bufferedAmount > 0) this.#lookLater();
  }

  #lookLater(): void {
    this.#cancelLook = this.#options.setTimer(LOOK_AT_SOCKET_MS, () => {
      this.#cancelLook = undefined;
      if (this.#error !== undefined) return;
      this.#streams?.flush();
      if (this.#cancelLook === undefined && this.#socket.bufferedAmount > 0) this.#lookLater();
    });
  }

  #fail(error: RelayError): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    this.#cancelTimeout();
    this.#cancelLook?.();
    this.#heartbeat?.stop();
    this.#rejectJoined(error);
    this.#resolveClosed(error);
    this.#streams?.close(error);
    this.#socket.close();
  }
}

function streamView(stream: PeerStream): ClientStream {
  return {
    write: (bytes) => stream.write(bytes),
    end: () => stream.end(),
    answer: stream.incoming,
    reset: () => stream.reset(RELAY_CODE.internal),
  };
}
