/** What a device sent through the relay, as the gateway gets it: bytes in, bytes out, and an end that is noticed. */
import { RELAY_CODE } from '../relay/wire/codes.ts';
import type { SetTimer } from '../relay/wire/heartbeat.ts';
import type { PeerStream } from '../relay/wire/stream-set.ts';

export interface TunnelStream {
  /** The second byte of the envelope, as the relay was told it: to be compared with the envelope itself. */
  readonly op: number;
  /** The relay's name for the device's connection: 8 random bytes. */
  readonly connTag: Uint8Array;
  /** The request; ends at its end. @throws RelayError when the stream was reset or the tunnel is dead */
  readonly bytes: AsyncIterable<Uint8Array>;
  /**
   * Sends the answer and ends it. The next piece is asked for only when it could be sent, so whoever makes the pieces is
   * as fast as the device reads.
   * @throws RelayError likewise, and whatever the pieces throw, after a reset
   */
  answer(pieces: AsyncIterable<Uint8Array>): Promise<void>;
  /** Fires when the stream was reset or the tunnel is dead. */
  readonly signal: AbortSignal;
  reset(code: number): void;
}

/** An answer of which nothing could be sent for so long has nobody who reads it, whether the relay says so or not. */
const STALLED_MS = 120_000;
/** What is left of a request that was answered early is read for so long, and then it is cut. */
const LINGER_MS = 10_000;

export function tunnelStream(stream: PeerStream, setTimer: SetTimer): TunnelStream {
  const dead = new AbortController();
  const died = new Promise<never>((_resolve, reject) => {
    stream.onDead((error) => {
      dead.abort(error);
      reject(error);
    });
  });
  died.catch(() => undefined);
  return {
    op: stream.op,
    connTag: stream.connectionTag,
    bytes: stream.incoming,
    signal: dead.signal,
    reset: (code) => stream.reset(code),
    answer: async (pieces) => {
      try {
        await send({ stream, setTimer, died }, pieces);
      } catch (error) {
        stream.reset(RELAY_CODE.internal);
        throw error;
      }
      stream.end();
      void discardRest(stream, setTimer);
    },
  };
}

interface Sending {
  readonly stream: PeerStream;
  readonly setTimer: SetTimer;
  /** Rejects when the stream is dead. */
  readonly died: Promise<never>;
}

async function send({ stream, setTimer, died }: Sending, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  const iterator = pieces[Symbol.asyncIterator]();
  const unlessStalled = async (sent: Promise<void>): Promise<void> => {
    const cancel = setTimer(STALLED_MS, () => stream.reset(RELAY_CODE.timeout));
    try {
      await sent;
    } finally {
      cancel();
    }
  };
  let isDone = false;
  try {
    for (;;) {
      await unlessStalled(stream.writable());
      const piece = await Promise.race([iterator.next(), died]);
      if (piece.done === true) {
        isDone = true;
        return;
      }
      await unlessStalled(stream.write(piece.value));
    }
  } finally {
    // Not waited for: it may hang on what it waits for itself, which is what the signal is for.
    if (!isDone) iterator.return?.().catch(() => undefined);
  }
}

async function discardRest(stream: PeerStream, setTimer: SetTimer): Promise<void> {
  const cancel = setTimer(LINGER_MS, () => stream.reset(RELAY_CODE.timeout));
  try {
    for await (const bytes of stream.incoming) void bytes;
    cancel();
  } catch {
    // Somebody still reads it, and has that long; or it is over.
  }
}
