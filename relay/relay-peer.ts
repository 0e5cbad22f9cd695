/**
 * One WebSocket of whoever is connected: sends frames, knows how much of them still waits, and whether the other side is
 * alive. It knows nothing of gateways and clients.
 */
import type { WebSocket } from 'ws';
import type { ConnectedPeer, RelayContext } from './relay-context.ts';
import type { FrameSender, Pausable } from './send-scheduler.ts';
import { RELAY_CODE, RelayError } from './wire/codes.ts';
import { decodeFrame, encodeFrame, type Frame } from './wire/frame.ts';

/** A socket that holds so much is given no more data. Small frames cost more than their bytes: they are counted too. */
const MAX_BUFFERED_BYTES = 1024 * 1024;
const MAX_BUFFERED_FRAMES = 1024;
/** Control frames pass those limits. Whoever reads none of them, and makes us answer, is cut off. */
const HARD_BUFFERED_BYTES = 8 * MAX_BUFFERED_BYTES;
const HARD_BUFFERED_FRAMES = 8 * MAX_BUFFERED_FRAMES;
/** To take what was said last before the socket is closed by force. */
const LINGER_MS = 1_000;
const BINARY = { binary: true } as const;
const PING = encodeFrame({ type: 'ping', bytes: new Uint8Array(8) });

/** What a connection is for. Before it has said so, it is for saying so. */
export interface PeerRole {
  /** @param message its bytes are the receiver's: they may be changed and passed on. @throws RelayError */
  receive(message: Buffer): void;
  /** The socket takes data again. */
  clear(): void;
  gone(code: number): void;
  /** Once a second. */
  keepAlive?(): void;
}

export class RelayPeer implements ConnectedPeer, FrameSender, Pausable {
  role: PeerRole;
  bytesIn = 0;
  bytesOut = 0;
  readonly #socket: WebSocket;
  readonly #context: RelayContext;
  readonly #sent: () => void;
  #framesWaiting = 0;
  #isBlocked = false;
  #isGone = false;
  #hasHeard = false;
  #heardAt: number;
  #pingAt: number;

  constructor(socket: WebSocket, context: RelayContext, role: PeerRole) {
    this.#socket = socket;
    this.#context = context;
    this.role = role;
    this.#heardAt = context.elapsedMs();
    this.#pingAt = this.#nextPing();
    this.#sent = () => {
      if (this.#isBlocked && this.isClear) {
        this.#isBlocked = false;
        this.role.clear();
      }
    };
    socket.on('message', (data, isBinary) => this.#message(data, isBinary));
    socket.on('error', () => this.#end(RELAY_CODE.protocol));
    socket.on('close', () => this.#end(RELAY_CODE.offline));
  }

  /** If it isn't, its role is told when it is. */
  get isClear(): boolean {
    const buffered = this.#socket.bufferedAmount;
    const isClear = buffered === 0 || (buffered < MAX_BUFFERED_BYTES && this.#framesWaiting < MAX_BUFFERED_FRAMES);
    if (!isClear) this.#isBlocked = true;
    return isClear;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  send(frame: Frame): void {
    this.sendBytes(encodeFrame(frame));
  }

  sendBytes(frame: Uint8Array): void {
    if (this.#isGone) return;
    const buffered = this.#socket.bufferedAmount;
    this.#framesWaiting = buffered === 0 ? 1 : this.#framesWaiting + 1;
    this.bytesOut += frame.length;
    // Only near the limit, where it may be waited for: a callback costs as much as the rest.
    const isNearLimit = this.#framesWaiting * 2 > MAX_BUFFERED_FRAMES || buffered * 2 > MAX_BUFFERED_BYTES;
    if (isNearLimit) this.#socket.send(frame, BINARY, this.#sent);
    else this.#socket.send(frame, BINARY);
    if (this.#framesWaiting > HARD_BUFFERED_FRAMES || buffered > HARD_BUFFERED_BYTES) this.#end(RELAY_CODE.flow);
  }

  refuse(code: number): void {
    this.send({ type: 'error', code });
    this.#end(code);
  }

  sendGoaway(code: number): void {
    this.send({ type: 'goaway', code, minMs: 0, spreadMs: this.#context.limits.drainSpreadMs, url: '' });
    this.#end(code);
  }

  announceDrain(): void {
    const { drainSpreadMs: spreadMs } = this.#context.limits;
    this.send({ type: 'goaway', code: RELAY_CODE.draining, minMs: 0, spreadMs, url: '' });
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#heardAt = this.#context.elapsedMs();
    this.#socket.resume();
  }

  /** Looks whether it is time for a PING, or too late for anything. */
  keepAlive(): void {
    const now = this.#context.elapsedMs();
    if (this.#hasHeard) this.#heardAt = now;
    this.#hasHeard = false;
    if (!this.#socket.isPaused && now - this.#heardAt > this.#context.limits.deadAfterMs) this.#end(RELAY_CODE.timeout);
    else if (now >= this.#pingAt) {
      this.#pingAt = this.#nextPing();
      this.sendBytes(PING);
    }
    this.role.keepAlive?.();
  }

  #nextPing(): number {
    const { elapsedMs, limits, random } = this.#context;
    return elapsedMs() + limits.pingEveryMs + (2 * random() - 1) * limits.pingSpreadMs;
  }

  #message(data: unknown, isBinary: boolean): void {
    if (this.#isGone) return;
    try {
      if (!isBinary || !Buffer.isBuffer(data)) throw new RelayError(RELAY_CODE.protocol);
      this.#hasHeard = true;
      this.bytesIn += data.length;
      this.role.receive(data);
    } catch (error) {
      if (!(error instanceof RelayError)) this.#context.log({ event: 'failed', code: RELAY_CODE.internal, error });
      this.refuse(error instanceof RelayError ? error.code : RELAY_CODE.internal);
    }
  }

  #end(code: number): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#socket.resume();
    this.#socket.close(1000);
    setTimeout(() => this.#socket.terminate(), LINGER_MS).unref();
    this.role.gone(code);
    this.#context.peers.delete(this);
  }
}

/** What every role does with the frames that keep a connection alive. @returns undefined if that was one */
export function decodeAfterKeepAlive(peer: RelayPeer, message: Buffer): Frame | undefined {
  const frame = decodeFrame(message);
  if (frame.type === 'ping') peer.send({ type: 'pong', bytes: frame.bytes });
  return frame.type === 'ping' || frame.type === 'pong' ? undefined : frame;
}
