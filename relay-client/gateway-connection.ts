/** One connection of a gateway to a relay, from the dial to its end. */
import { WebSocket } from 'ws';
import { RELAY_CODE, RelayError } from '../relay/wire/codes.ts';
import { decodeFrame, encodeFrame, type Frame } from '../relay/wire/frame.ts';
import { startHeartbeat, type Clock, type Heartbeat } from '../relay/wire/heartbeat.ts';
import { registrationMessage } from '../relay/wire/registration.ts';
import { MAX_BUFFERED_BYTES, StreamSet, type PeerStream } from '../relay/wire/stream-set.ts';
import { AllowList } from './allow-list.ts';

/** Signs with gr, the gateway's key for this one relay. */
export interface RelayKey {
  /** GR, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Ed25519 over exactly these bytes. */
  sign(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

export interface GatewayConnectionOptions {
  readonly socket: WebSocket;
  readonly clock: Clock;
  /** What this relay was configured as. */
  readonly origin: string;
  readonly key: RelayKey;
  readonly epoch: number;
  readonly admission: Uint8Array;
  readonly onStream: (stream: PeerStream) => void;
  readonly onBytes: (bytes: { readonly in: number; readonly out: number }) => void;
}

export interface Registered {
  readonly routingId: Uint8Array;
  readonly allowList: AllowList;
}

/** @see GatewayConnection.ended */
export interface ConnectionEnd {
  readonly error: RelayError;
  /** The relay asked to be dialled again after that. */
  readonly wait?: { readonly minMs: number; readonly spreadMs: number };
}

const CAPS = 0;
/** How long the relay has to say that it heard. */
const LEAVE_MS = 1000;
/** RFC 6455, 7.4.1. */
const GOING_AWAY = 1001;
const MAX_SKEW_MS = 7 * 86_400_000;

export class GatewayConnection {
  /** @throws RelayError if it isn't taken */
  readonly registered: Promise<Registered>;
  /** Resolves when it is over, or the relay asked to be left: what runs then may go on for a while. */
  readonly ended: Promise<ConnectionEnd>;
  readonly #options: GatewayConnectionOptions;
  readonly #registered = Promise.withResolvers<Registered>();
  readonly #ended = Promise.withResolvers<ConnectionEnd>();
  #hello: Extract<Frame, { type: 'hello' }> | undefined;
  #skewMs = 0;
  #streams: StreamSet | undefined;
  readonly #heartbeat: Heartbeat;
  #isFull = false;
  #error: RelayError | undefined;

  constructor(options: GatewayConnectionOptions) {
    this.#options = options;
    this.registered = this.#registered.promise;
    // Whoever gave up waiting for it reads `ended`.
    this.registered.catch(() => undefined);
    this.ended = this.#ended.promise;
    this.#heartbeat = startHeartbeat(options.clock, {
      ping: () => this.#send(encodeFrame({ type: 'ping', bytes: new Uint8Array(8) })),
      dead: () => this.close(new RelayError(RELAY_CODE.timeout, 'the relay fell silent')),
    });
    const { socket } = options;
    socket.on('message', (data, isBinary) => this.#message(data, isBinary));
    socket.on('error', (error) => this.close(new RelayError(RELAY_CODE.offline, `no connection: ${plain(error)}`)));
    socket.on('close', () => this.close(new RelayError(RELAY_CODE.offline, 'the relay closed the connection')));
  }

  get isOpen(): boolean {
    return this.#error === undefined;
  }

  /** Ends it at once, with all its streams. */
  close(error: RelayError): void {
    if (this.#error !== undefined) return;
    this.#end(error);
    // A close frame would wait for an answer that may never come.
    this.#options.socket.terminate();
  }

  /** Ends it, and all its streams, when what was written is on its way. */
  async leave(): Promise<void> {
    const { socket, clock } = this.#options;
    if (this.#error !== undefined) return;
    this.#end(new RelayError(RELAY_CODE.offline, 'the connection was closed from here'));
    const closed = new Promise((resolve) => void socket.once('close', resolve));
    const cancel = clock.setTimer(LEAVE_MS, () => socket.terminate());
    socket.close(GOING_AWAY);
    await closed;
    cancel();
  }

  #end(error: RelayError): void {
    this.#error = error;
    this.#heartbeat.stop();
    this.#registered.reject(error);
    this.#ended.resolve({ error });
    this.#streams?.close(error);
  }

  #message(data: unknown, isBinary: boolean): void {
    if (this.#error !== undefined) return;
    try {
      if (!isBinary || !Buffer.isBuffer(data)) throw new RelayError(RELAY_CODE.protocol);
      this.#heartbeat.heard();
      this.#options.onBytes({ in: data.length, out: 0 });
      this.#accept(decodeFrame(data));
    } catch (error) {
      this.close(error instanceof RelayError ? error : new RelayError(RELAY_CODE.internal));
    }
  }

  #accept(frame: Frame): void {
    switch (frame.type) {
      case 'hello':
        return this.#register(frame);
      case 'registered':
        return this.#begin(frame.routingId);
      case 'ping':
        return this.#send(encodeFrame({ type: 'pong', bytes: frame.bytes }));
      case 'pong':
        return;
      case 'error':
        // That more tags were allowed than fit is no reason to end.
        if (this.#streams !== undefined && frame.code === RELAY_CODE.tooMany) return;
        throw new RelayError(frame.code);
      case 'goaway':
        return this.#leave(frame);
      case 'open':
      case 'data':
      case 'window':
      case 'reset':
        if (this.#streams === undefined) throw new RelayError(RELAY_CODE.protocol);
        return this.#streams.accept(frame);
      default:
        throw new RelayError(RELAY_CODE.protocol);
    }
  }

  #register(hello: Extract<Frame, { type: 'hello' }>): void {
    if (this.#hello !== undefined) throw new RelayError(RELAY_CODE.protocol);
    this.#hello = hello;
    const { clock, origin } = this.#options;
    if (hello.origin !== origin) {
      const words = `the relay calls itself ${hello.origin}, and not ${origin}; nothing was signed for it`;
      throw new RelayError(RELAY_CODE.notAllowed, words);
    }
    const skewMs = hello.timeMs - clock.now();
    this.#skewMs = Math.abs(skewMs) > MAX_SKEW_MS ? 0 : skewMs;
    this.#prove(hello.nonce).catch(() =>
      this.close(new RelayError(RELAY_CODE.internal, 'the registration could not be signed')),
    );
  }

  async #prove(nonce: Uint8Array): Promise<void> {
    const { origin, key, epoch, admission } = this.#options;
    const registration = { publicKey: key.publicKey, epoch, caps: CAPS, admission };
    const signature = await key.sign(registrationMessage({ origin, nonce }, registration));
    this.#send(encodeFrame({ type: 'register', signature, ...registration }));
  }

  #begin(routingId: Uint8Array): void {
    if (this.#hello === undefined || this.#streams !== undefined) throw new RelayError(RELAY_CODE.protocol);
    const windows = this.#hello;
    const sink = { send: (frame: Uint8Array) => this.#send(frame), buffered: () => this.#buffered() };
    // So many bytes can't be on their way unread by one client that no other client's get through.
    const receiveWindow = Math.max(windows.connectionWindow, windows.streamWindow * windows.maxStreams);
    const { onStream, clock } = this.#options;
    this.#streams = new StreamSet({ sink, windows, receiveWindow, onOpen: onStream });
    if (receiveWindow > windows.connectionWindow) {
      const credit = receiveWindow - windows.connectionWindow;
      this.#send(encodeFrame({ type: 'window', stream: 0, credit }));
    }
    const send = (frame: Frame): void => this.#send(encodeFrame(frame));
    const allowList = new AllowList({ send, skewMs: this.#skewMs, random: clock.random });
    this.#registered.resolve({ routingId: new Uint8Array(routingId), allowList });
  }

  #leave({ code, minMs, spreadMs }: Extract<Frame, { type: 'goaway' }>): void {
    const error = new RelayError(code);
    this.#registered.reject(error);
    this.#ended.resolve({ error, wait: { minMs, spreadMs } });
    if (code !== RELAY_CODE.draining && code !== RELAY_CODE.moved) this.close(error);
  }

  #buffered(): number {
    const bytes = this.#options.socket.bufferedAmount;
    this.#isFull = bytes >= MAX_BUFFERED_BYTES;
    return bytes;
  }

  #send(frame: Uint8Array): void {
    // A PING may be due before the socket has opened.
    if (this.#error !== undefined || this.#options.socket.readyState !== WebSocket.OPEN) return;
    this.#options.onBytes({ in: 0, out: frame.length });
    this.#options.socket.send(frame, () => {
      if (this.#isFull) this.#streams?.flush();
    });
  }
}

/** The operating system's word for it, and the host that it concerns; nothing of what was sent. */
function plain(error: Error): string {
  return error.message.length > 200 ? error.name : error.message;
}
