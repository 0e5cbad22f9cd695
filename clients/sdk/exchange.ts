/** One exchange over one transport, with limits to how long it waits: a dead path is quiet more often than it says so. */
import { PathError } from './errors.ts';
import type { SetTimer } from '../../relay/wire/heartbeat.ts';
import { abortable } from './platform.ts';
import type { Operation, Transport } from './transport.ts';

export interface Exchange {
  readonly transport: Transport;
  readonly operation: Operation;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal;
  readonly setTimer: SetTimer;
  /** How long the answer may take to begin. */
  readonly beginsWithinMs: number;
  /** How long it may be silent after that. */
  readonly silentForMs: number;
}

/**
 * The answer's bytes, as they are asked for. Time counts only while somebody waits for them. Who stops asking ends the
 * exchange. @throws PathError if the path broke or is silent for too long; the signal's reason when it aborts
 */
export async function* exchange(options: Exchange): AsyncGenerator<Uint8Array, void> {
  const { transport, operation, body, signal, beginsWithinMs, silentForMs } = options;
  const ending = new AbortController();
  const onAbort = (): void => ending.abort(signal.reason);
  const within = limiter(options.setTimer, ending);
  signal.addEventListener('abort', onAbort, { once: true });
  let isOver = false;
  try {
    signal.throwIfAborted();
    const answer = await within(beginsWithinMs, transport.exchange(operation, body, ending.signal));
    const reader = answer.getReader();
    for (;;) {
      const { done, value } = await within(silentForMs, reader.read());
      isOver = done;
      if (done) return;
      yield value;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw new PathError('the path broke', { cause: error });
  } finally {
    signal.removeEventListener('abort', onAbort);
    if (!isOver) ending.abort();
  }
}

type Limiter = <Value>(limitMs: number, promise: Promise<Value>) => Promise<Value>;

function limiter(setTimer: SetTimer, ending: AbortController): Limiter {
  return async (limitMs, promise) => {
    const cancel = setTimer(limitMs, () => ending.abort(new PathError('silent')));
    try {
      return await abortable(promise, ending.signal);
    } finally {
      cancel();
    }
  };
}

/** A small answer, whole. @throws PathError also if it has more than `maxBytes` */
export async function exchangeWhole(options: Exchange, maxBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of exchange(options)) {
    length += piece.length;
    if (length > maxBytes) throw new PathError('the answer is too long');
    pieces.push(piece);
  }
  return joinBytes(pieces);
}

/** In memory of its own, as `fetch` wants a body. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
