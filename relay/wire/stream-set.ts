/**
 * The streams of one connection, as the two ends see them (the relay in between has its own view, `relayed-stream.ts`).
 * Frames in, frames out; no socket, no clock.
 *
 * Credits keep each side from being sent more than it takes: 256 KiB for a stream, and a window for the connection. What
 * a reader has taken is granted again. A writer's bytes go out in slices of 16 KiB, one stream after the other, so that
 * a large answer never stands before a small one.
 */
import { RELAY_CODE, RelayError } from './codes.ts';
import { encodeFrame, type Frame, type Windows } from './frame.ts';
import { ReceivedBytes } from './received-bytes.ts';

export const SLICE_BYTES = 16 * 1024;
/** Beyond that much waiting in the socket nothing more is put into it. */
export const MAX_BUFFERED_BYTES = 1024 * 1024;

/** How frames leave. `flush` of the set is to be called when `buffered` has gone down. */
export interface FrameSink {
  send(frame: Uint8Array): void;
  /** Bytes that wait in the socket. */
  buffered(): number;
}

export interface PeerStream {
  readonly op: number;
  /** The relay's name for the client's connection: 8 random bytes; empty at the client. */
  readonly connectionTag: Uint8Array;
  /** What the other side sends. Ends at its END. @throws RelayError when the stream was reset or the connection ended */
  readonly incoming: AsyncIterable<Uint8Array>;
  /** Waits until something could be sent. @throws RelayError likewise */
  writable(): Promise<void>;
  /** Done when all of it was sent; one call at a time. The bytes must not change before. @throws RelayError likewise */
  write(bytes: Uint8Array): Promise<void>;
  /** No more comes from here. */
  end(): void;
  /** Ends it in both directions at once. */
  reset(code: number): void;
  /** Calls once, when it is reset from either side, or the connection ends; at once if that has been. */
  onDead(run: (error: RelayError) => void): void;
}

interface Pending {
  readonly bytes: Uint8Array;
  readonly done: () => void;
  readonly failed: (error: RelayError) => void;
}

interface OpenStream {
  readonly id: number;
  readonly received: ReceivedBytes;
  credit: number;
  pending: Pending | undefined;
  isEndSent: boolean;
  isEndReceived: boolean;
  error: RelayError | undefined;
  readonly waiting: Set<() => void>;
  readonly deathListeners: ((error: RelayError) => void)[];
}

export interface StreamSetOptions {
  readonly sink: FrameSink;
  /** What the other side granted at the beginning. */
  readonly windows: Windows;
  /** What was granted to the other side for the connection; by default as much. */
  readonly receiveWindow?: number;
  /** Told of streams that the other side opens; without it, it may open none. */
  readonly onOpen?: (stream: PeerStream) => void;
}

export class StreamSet {
  readonly #sink: FrameSink;
  readonly #windows: Windows;
  readonly #onOpen: ((stream: PeerStream) => void) | undefined;
  readonly #streams = new Map<number, OpenStream>();
  /** Streams with something to send, in turn. */
  #turns: OpenStream[] = [];
  #credit: number;
  readonly #receiveWindow: number;
  #receiveCredit: number;
  #toGrant = 0;
  #lastId = 0;
  #error: RelayError | undefined;

  constructor({ sink, windows, receiveWindow, onOpen }: StreamSetOptions) {
    this.#sink = sink;
    this.#windows = windows;
    this.#credit = windows.connectionWindow;
    this.#receiveWindow = receiveWindow ?? windows.connectionWindow;
    this.#receiveCredit = this.#receiveWindow;
    this.#onOpen = onOpen;
  }

  /** @throws RelayError if the connection has ended, or has as many streams as it may */
  open(op: number): PeerStream {
    if (this.#error !== undefined) throw this.#error;
    if (this.#streams.size >= this.#windows.maxStreams) throw new RelayError(RELAY_CODE.tooMany);
    this.#lastId += 1;
    this.#sink.send(encodeFrame({ type: 'open', stream: this.#lastId, op }));
    return this.#view(this.#add(this.#lastId), op, new Uint8Array(0));
  }

  /** Takes a frame that concerns streams. @throws RelayError if the connection can't go on */
  accept(frame: Extract<Frame, { type: 'open' | 'data' | 'window' | 'reset' }>): void {
    if (frame.type === 'open') this.#opened(frame.stream, frame.op, frame.connectionTag ?? new Uint8Array(0));
    else if (frame.type === 'data') this.#received(frame.stream, frame.bytes, frame.isEnd);
    else if (frame.type === 'window') this.#granted(frame.stream, frame.credit);
    else this.#die(this.#streams.get(frame.stream), new RelayError(frame.code));
  }

  /** Sends what credit and the socket allow. */
  flush(): void {
    while (this.#turns.length > 0 && this.#credit > 0 && this.#sink.buffered() < MAX_BUFFERED_BYTES) {
      const stream = this.#turns.shift();
      if (stream !== undefined && this.#sendSlice(stream)) this.#turns.push(stream);
    }
    if (this.#canSend()) for (const stream of this.#streams.values()) wake(stream);
  }

  /** The connection has ended: every stream ends with the error. */
  close(error: RelayError): void {
    this.#error ??= error;
    for (const stream of this.#streams.values()) this.#die(stream, error);
  }

  #canSend(): boolean {
    return this.#credit > 0 && this.#sink.buffered() < MAX_BUFFERED_BYTES;
  }

  #add(id: number): OpenStream {
    const stream: OpenStream = {
      id,
      received: new ReceivedBytes({
        limit: this.#windows.streamWindow,
        taken: (bytes) => this.#take(bytes),
        grant: (credit) => this.#send({ type: 'window', stream: id, credit }),
      }),
      credit: this.#windows.streamWindow,
      pending: undefined,
      isEndSent: false,
      isEndReceived: false,
      error: undefined,
      waiting: new Set(),
      deathListeners: [],
    };
    this.#streams.set(id, stream);
    return stream;
  }

  #opened(id: number, op: number, connectionTag: Uint8Array): void {
    if (this.#onOpen === undefined || id <= this.#lastId) throw new RelayError(RELAY_CODE.protocol);
    this.#lastId = id;
    if (this.#streams.size >= this.#windows.maxStreams) {
      this.#send({ type: 'reset', stream: id, code: RELAY_CODE.tooMany });
      return;
    }
    this.#onOpen(this.#view(this.#add(id), op, new Uint8Array(connectionTag)));
  }

  #received(id: number, bytes: Uint8Array, isEnd: boolean): void {
    if (id > this.#lastId) throw new RelayError(RELAY_CODE.protocol);
    this.#receiveCredit -= bytes.length;
    if (this.#receiveCredit < 0) throw new RelayError(RELAY_CODE.flow);
    const stream = this.#streams.get(id);
    // It was reset from here while these bytes were on their way.
    if (stream === undefined) return this.#take(bytes.length);
    if (stream.isEndReceived || !stream.received.push(bytes)) {
      this.#take(bytes.length);
      return this.#reset(stream, RELAY_CODE.flow);
    }
    if (!isEnd) return;
    stream.isEndReceived = true;
    stream.received.end();
    this.#forgetIfOver(stream);
  }

  #granted(id: number, credit: number): void {
    if (id > this.#lastId) throw new RelayError(RELAY_CODE.protocol);
    if (id === 0) this.#credit += credit;
    else {
      const stream = this.#streams.get(id);
      if (stream !== undefined) stream.credit += credit;
      if (stream?.pending !== undefined && !this.#turns.includes(stream)) this.#turns.push(stream);
    }
    this.flush();
  }

  /** Bytes have left the buffer of a stream: as much may come again, for the connection. */
  #take(bytes: number): void {
    this.#toGrant += bytes;
    if (this.#toGrant * 4 < this.#receiveWindow) return;
    const credit = this.#toGrant;
    this.#toGrant = 0;
    this.#receiveCredit += credit;
    this.#send({ type: 'window', stream: 0, credit });
  }

  /** @returns whether it has more to send, and credit for it */
  #sendSlice(stream: OpenStream): boolean {
    const { pending } = stream;
    if (pending === undefined || stream.credit <= 0) return false;
    const size = Math.min(SLICE_BYTES, pending.bytes.length, stream.credit, this.#credit);
    stream.credit -= size;
    this.#credit -= size;
    this.#send({ type: 'data', stream: stream.id, bytes: pending.bytes.subarray(0, size), isEnd: false });
    stream.pending = size < pending.bytes.length ? { ...pending, bytes: pending.bytes.subarray(size) } : undefined;
    if (stream.pending === undefined) pending.done();
    return stream.pending !== undefined && stream.credit > 0;
  }

  #send(frame: Frame): void {
    if (this.#error === undefined) this.#sink.send(encodeFrame(frame));
  }

  #reset(stream: OpenStream, code: number): void {
    if (this.#streams.get(stream.id) !== stream) return;
    this.#send({ type: 'reset', stream: stream.id, code });
    this.#die(stream, new RelayError(code));
  }

  #die(stream: OpenStream | undefined, error: RelayError): void {
    if (stream === undefined || stream.error !== undefined) return;
    stream.error = error;
    this.#streams.delete(stream.id);
    stream.received.fail(error);
    stream.pending?.failed(error);
    stream.pending = undefined;
    wake(stream);
    for (const listener of stream.deathListeners.splice(0)) listener(error);
  }

  #forgetIfOver(stream: OpenStream): void {
    if (stream.isEndSent && stream.isEndReceived) this.#streams.delete(stream.id);
  }

  #view(stream: OpenStream, op: number, connectionTag: Uint8Array): PeerStream {
    return {
      op,
      connectionTag,
      incoming: stream.received,
      writable: () => this.#writable(stream),
      write: (bytes) => this.#write(stream, bytes),
      end: () => this.#end(stream),
      reset: (code) => this.#reset(stream, code),
      onDead: (run) => {
        if (stream.error === undefined) stream.deathListeners.push(run);
        else run(stream.error);
      },
    };
  }

  async #writable(stream: OpenStream): Promise<void> {
    while (stream.error === undefined && !(stream.credit > 0 && this.#canSend())) {
      await new Promise<void>((resolve) => stream.waiting.add(resolve));
    }
    if (stream.error !== undefined) throw stream.error;
  }

  async #write(stream: OpenStream, bytes: Uint8Array): Promise<void> {
    if (stream.error !== undefined) throw stream.error;
    if (stream.isEndSent || stream.pending !== undefined)
      throw new RangeError('one write at a time, and none after end');
    if (bytes.length === 0) return;
    await new Promise<void>((done, failed) => {
      stream.pending = { bytes, done, failed };
      this.#turns.push(stream);
      this.flush();
    });
  }

  #end(stream: OpenStream): void {
    if (stream.error !== undefined || stream.isEndSent) return;
    stream.isEndSent = true;
    this.#send({ type: 'data', stream: stream.id, bytes: new Uint8Array(0), isEnd: true });
    this.#forgetIfOver(stream);
  }
}

function wake(stream: OpenStream): void {
  if (stream.waiting.size === 0) return;
  const waiting = [...stream.waiting];
  stream.waiting.clear();
  for (const resolve of waiting) resolve();
}
