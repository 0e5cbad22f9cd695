/**
 * What goes out to one connection: at once where nothing waits, else one slice of each stream in turn, within the credit
 * that the connection granted and what its socket takes.
 */
import type { RelayContext } from './relay-context.ts';
import type { ByteQueue } from './wire/byte-queue.ts';
import { RELAY_CODE } from './wire/codes.ts';
import { encodeFrame, HEADER_BYTES, setStream, type Frame } from './wire/frame.ts';

const SLICE_BYTES = 16 * 1024;
/** A reader that takes nothing of what waits for it loses those streams. */
const STALLED_MS = 60_000;

/** Takes frames for a socket, here or at another node. */
export interface FrameSender {
  /** Whether it is to be given data. If not, `flush` is to be called when it is. */
  readonly isClear: boolean;
  send(frame: Frame): void;
  /** @param frame one whole frame, which nobody changes from now on */
  sendBytes(frame: Uint8Array): void;
}

/** A socket that is read from, or not. */
export interface Pausable {
  pause(): void;
  resume(): void;
}

/** One direction of a stream, as far as its bytes wait here. */
export interface Flow {
  readonly stream: { reset(code: number): void; forgetIfOver(): void };
  readonly targetId: number;
  /** What waits for the target. */
  readonly queue: ByteQueue;
  isEndReceived: boolean;
  isEndSent: boolean;
}

export class SendScheduler {
  readonly #peer: FrameSender;
  readonly #context: RelayContext;
  /** Flows with bytes that wait, in turn. */
  #turns: Flow[] = [];
  #credit: number;
  #hasMoved = false;
  #movedAt = 0;
  readonly #paused = new Set<Pausable>();

  constructor(peer: FrameSender, context: RelayContext) {
    this.#peer = peer;
    this.#context = context;
    this.#credit = context.limits.connectionWindowBytes;
  }

  /** The connection takes so many bytes more. */
  grant(credit: number): void {
    this.#credit += credit;
    this.flush();
  }

  /** Passes a frame on as it is. @returns false if it has to wait */
  passOn(flow: Flow, message: Uint8Array): boolean {
    const length = message.length - HEADER_BYTES;
    const isNext = this.#turns.length === 0 && length <= this.#credit && this.#peer.isClear;
    // An END alone costs nothing, and overtakes nothing of its own stream.
    if (!isNext && !(length === 0 && flow.queue.length === 0)) return false;
    this.#credit -= length;
    setStream(message, flow.targetId);
    this.#send(flow, message, flow.isEndReceived);
    return true;
  }

  hold(flow: Flow, bytes: Uint8Array): void {
    if (this.#turns.length === 0) this.#hasMoved = true;
    if (flow.queue.length === 0) this.#turns.push(flow);
    flow.queue.push(bytes);
    this.#context.held.bytes += bytes.length;
    this.flush();
  }

  drop(flow: Flow): void {
    if (flow.queue.length === 0) return;
    this.#context.held.bytes -= flow.queue.clear();
    this.#turns = this.#turns.filter((one) => one !== flow);
  }

  flush(): void {
    while (this.#turns.length > 0 && this.#credit > 0 && this.#peer.isClear) {
      const flow = this.#turns.shift();
      if (flow !== undefined) this.#sendSlice(flow);
    }
    if (this.#paused.size > 0 && this.#peer.isClear) this.#resumeAll();
  }

  /** Reads no more from that peer while this connection's socket is full. */
  pauseUntilClear(peer: Pausable): void {
    if (this.#peer.isClear) return;
    this.#paused.add(peer);
    peer.pause();
  }

  /** Once a second: ends what has waited for too long. */
  endStalled(): void {
    if (this.#turns.length === 0) return;
    if (this.#hasMoved) this.#movedAt = this.#context.elapsedMs();
    this.#hasMoved = false;
    if (this.#context.elapsedMs() - this.#movedAt < STALLED_MS) return;
    for (const { stream } of this.#turns) stream.reset(RELAY_CODE.timeout);
  }

  close(): void {
    this.#resumeAll();
  }

  #sendSlice(flow: Flow): void {
    const bytes = flow.queue.shift(Math.min(SLICE_BYTES, this.#credit));
    if (bytes === undefined) return;
    this.#context.held.bytes -= bytes.length;
    this.#credit -= bytes.length;
    const hasMore = flow.queue.length > 0;
    if (hasMore) this.#turns.push(flow);
    const isEnd = flow.isEndReceived && !hasMore;
    this.#send(flow, encodeFrame({ type: 'data', stream: flow.targetId, bytes, isEnd }), isEnd);
  }

  #send(flow: Flow, frame: Uint8Array, isEnd: boolean): void {
    this.#hasMoved = true;
    const { tally } = this.#context.metrics;
    tally.bytes += frame.length - HEADER_BYTES;
    tally.frames += 1;
    this.#peer.sendBytes(frame);
    if (!isEnd) return;
    flow.isEndSent = true;
    flow.stream.forgetIfOver();
  }

  #resumeAll(): void {
    for (const peer of this.#paused) peer.resume();
    this.#paused.clear();
  }
}
