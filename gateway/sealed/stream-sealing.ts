/**
 * How an inner answer becomes records. A body whose length is known goes out as fast as it is read, padded to powers of
 * two. A stream is collected for a tick, so that the times and sizes on the wire tell little of its tokens, and says a
 * word now and then when there is nothing to say, so that a dead path shows.
 */
import { concatBytes } from '../../channel/bytes.ts';
import { encodeAnswerHead, type AnswerHead } from '../../channel/head.ts';
import { MAX_DATA_BYTES } from '../../channel/record.ts';
import type { SetTimer } from '../../core/timer.ts';
import type { ReplayBuffer } from './replay-buffer.ts';

/** Of a stream, in a tick. A source that is faster waits for the next one. */
const COLLECTED_BYTES = 256 * 1024;

/** A stream says nothing for no longer than this. */
export const PAD_MS = 15_000;

export interface StreamTiming {
  readonly tickMs: number;
  readonly setTimer: SetTimer;
}

/** An answer that is there in whole. */
export function putWhole(log: ReplayBuffer, head: Omit<AnswerHead, 'bodyBytes'>, body: Uint8Array): void {
  const hasBody = body.length > 0;
  log.put({ kind: 'head', data: encodeAnswerHead({ ...head, bodyBytes: body.length }), last: !hasBody });
  if (!hasBody) return;
  const lastAt = Math.floor((body.length - 1) / MAX_DATA_BYTES) * MAX_DATA_BYTES;
  for (let at = 0; at < lastAt; at += MAX_DATA_BYTES) {
    log.put({ kind: 'data', data: body.subarray(at, at + MAX_DATA_BYTES) });
  }
  log.put({ kind: 'data', data: body.subarray(lastAt), last: true });
}

/** A body as it is read, in records as large as they get; the head goes with the first, so that a small answer is one piece. */
export async function putBody(log: ReplayBuffer, head: AnswerHead, body: AsyncIterable<Uint8Array>): Promise<void> {
  const headPlan = { kind: 'head', data: encodeAnswerHead(head), last: head.bodyBytes === 0 } as const;
  let isHeadPut = headPlan.last;
  if (isHeadPut) return log.put(headPlan);
  const put = (data: Uint8Array, last = false): void => {
    if (!isHeadPut) log.put(headPlan);
    isHeadPut = true;
    log.put({ kind: 'data', data, last });
  };
  let rest: Uint8Array[] = [];
  let restBytes = 0;
  for await (const piece of body) {
    rest.push(piece);
    restBytes += piece.length;
    if (restBytes < MAX_DATA_BYTES) continue;
    const all = concatBytes(...rest);
    let at = 0;
    // One byte stays behind for the last record, since nobody knows yet which one that is.
    for (; all.length - at > MAX_DATA_BYTES; at += MAX_DATA_BYTES) {
      put(all.subarray(at, at + MAX_DATA_BYTES));
    }
    rest = [all.subarray(at)];
    restBytes = all.length - at;
    await log.room();
  }
  put(concatBytes(...rest), true);
}

/** A stream, tick by tick. */
export async function putStream(
  log: ReplayBuffer,
  { head, body }: { readonly head: AnswerHead; readonly body: AsyncIterable<Uint8Array> },
  timing: StreamTiming,
): Promise<void> {
  log.put({ kind: 'head', data: encodeAnswerHead(head) });
  const ticks = new Coalescer(log, timing);
  try {
    for await (const piece of body) {
      ticks.add(piece);
      await ticks.room();
      await log.room();
    }
    await ticks.end();
  } finally {
    ticks.stop();
  }
}

class Coalescer {
  readonly #log: ReplayBuffer;
  readonly #timing: StreamTiming;
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #flushed = Promise.withResolvers<void>();
  #cancelTick: (() => void) | undefined;
  #cancelPad: (() => void) | undefined;
  #ended: (() => void) | undefined;

  constructor(log: ReplayBuffer, timing: StreamTiming) {
    this.#log = log;
    this.#timing = timing;
    this.#awaitSilence();
  }

  add(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    this.#beginTick();
  }

  /** Resolves when there is room for more. */
  async room(): Promise<void> {
    if (this.#bytes >= COLLECTED_BYTES) await this.#flushed.promise;
  }

  /** The last record goes out with the tick, like all others: the gap before it tells nothing either. */
  end(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = resolve;
    this.#beginTick();
    return promise;
  }

  stop(): void {
    this.#cancelTick?.();
    this.#cancelPad?.();
  }

  #beginTick(): void {
    this.#cancelTick ??= this.#timing.setTimer(this.#timing.tickMs, () => this.#flush());
  }

  #flush(): void {
    this.#cancelTick = undefined;
    this.#cancelPad?.();
    const data = concatBytes(...this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    const isLast = this.#ended !== undefined;
    const lastAt = Math.max(0, Math.ceil(data.length / MAX_DATA_BYTES) - 1) * MAX_DATA_BYTES;
    for (let at = 0; at <= lastAt; at += MAX_DATA_BYTES) {
      const part = data.subarray(at, at + MAX_DATA_BYTES);
      this.#log.put({ kind: 'data', data: part, last: isLast && at === lastAt, padding: 'stream' });
    }
    this.#flushed.resolve();
    this.#flushed = Promise.withResolvers();
    this.#awaitSilence();
    this.#ended?.();
  }

  #awaitSilence(): void {
    this.#cancelPad = this.#timing.setTimer(PAD_MS, () => {
      // What is being collected says enough, and a tick after the record before it like all others.
      const isSilent = this.#cancelTick === undefined && this.#log.isIdle;
      if (this.#log.hasReader && isSilent) this.#log.put({ kind: 'pad' });
      this.#awaitSilence();
    });
  }
}
