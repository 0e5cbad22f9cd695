/**
 * The answer of one sealed call: what is to be said, and the records that were made of it.
 *
 * A record is sealed when a reader takes it, not before. So a call that is ended has nothing sealed in a queue, and the
 * record that says why it ended is the very next one, however slowly the reader reads. What was sealed is kept for a
 * while, so that a reader whose transport broke can take it again; nothing is sealed twice.
 */
import { concatBytes, EMPTY } from '../../channel/bytes.ts';
import type { Answer } from '../../channel/received-call.ts';
import type { Padding } from '../../channel/record.ts';
import type { SetTimer } from '../../core/timer.ts';

/** A record that is not sealed yet. Data and head fit into one record. */
export type Plan =
  | { readonly kind: 'head'; readonly data: Uint8Array; readonly last?: boolean }
  | { readonly kind: 'data'; readonly data: Uint8Array; readonly last?: boolean; readonly padding?: Padding }
  | { readonly kind: 'pad' };

/** Where the memory that answers take is counted. */
export interface AnswerMemory {
  /** So many bytes more are held, or fewer. */
  count(bytes: number): void;
  /** There is none for what nobody waits for. */
  isScarce(): boolean;
}

/** Sealed records that are kept for a reader who comes back: so many bytes, and for so long. */
export const KEPT_BYTES = 1024 * 1024;
export const KEPT_MS = 120_000;
/** What may wait for a reader, and while there is none. */
const WAITING_BYTES = 256 * 1024;
const UNREAD_BYTES = KEPT_BYTES;
/** What may wait where memory is scarce. */
const SCARCE_BYTES = 64 * 1024;
/** What a record takes beside its bytes, sealed or not. */
const RECORD_BYTES = 256;
/** After so long the beginning of an answer goes out alone, so that its reader knows that it comes. */
const PREFIX_MS = 40;
/** Records that go out in one piece. */
const PIECE_BYTES = 65_536;

interface ReplayReader {
  nextIndex: number;
  isOverdue: boolean;
}

interface LogOptions {
  readonly memory: AnswerMemory;
  readonly now: () => number;
  readonly setTimer: SetTimer;
  /** Called when the reader is gone and not all was read. */
  readonly onUnread: () => void;
}

export class ReplayBuffer {
  readonly #answer: Answer;
  readonly #options: LogOptions;
  readonly #plans: Plan[] = [];
  #waitingBytes = 0;
  #kept: { readonly record: Uint8Array; readonly atMs: number }[] = [];
  #keptBytes = 0;
  #firstKept = 0;
  #nextIndex = 0;
  #countedBytes = 0;
  #isBegun = false;
  #isOver = false;
  #wasRead = false;
  #isDropped = false;
  #reader: ReplayReader | undefined;
  #change = Promise.withResolvers<void>();

  constructor(answer: Answer, options: LogOptions) {
    this.#answer = answer;
    this.#options = options;
  }

  get hasReader(): boolean {
    return this.#reader !== undefined;
  }

  /** All of it was sealed, and nothing follows. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get isBegun(): boolean {
    return this.#isBegun;
  }

  get isIdle(): boolean {
    return this.#plans.length === 0;
  }

  put(plan: Plan): void {
    if (this.#isOver) return;
    this.#isBegun = true;
    this.#plans.push(plan);
    this.#waitingBytes += bytesOf(plan);
    this.#count();
    this.#changed();
  }

  /** Resolves when there is room for more, or when there is no sense in more. */
  async room(): Promise<void> {
    while (!this.#isOver && this.#waitingBytes > this.#roomBytes) await this.#change.promise;
  }

  /** Drops all that was not sealed; what is given is sealed already, and the last that goes out. */
  end(lastRecord: Uint8Array | undefined): void {
    this.#plans.length = 0;
    this.#waitingBytes = 0;
    if (!this.#isOver) {
      if (lastRecord !== undefined) this.#keep(lastRecord);
      this.#isOver = true;
      this.#changed();
    }
    this.#count();
  }

  /** Lets go of the records too: nobody will take them, but for the word that a call ended with before it was answered. */
  drop(): void {
    if (this.#wasRead) {
      this.#kept = [];
      this.#keptBytes = 0;
      this.#firstKept = this.#nextIndex;
    }
    this.#isDropped = true;
    this.end(undefined);
  }

  /**
   * The records from an index on, those to come included. One reader at a time: a later one takes the place of this.
   * @param prefix goes out before them: with the first, or alone when that takes longer than a moment
   * @returns undefined if they are not kept any more, or never were
   */
  read(fromIndex: number, gone: AbortSignal, prefix = EMPTY): AsyncGenerator<Uint8Array> | undefined {
    this.trim();
    if (fromIndex < this.#firstKept || fromIndex > this.#nextIndex) return undefined;
    const reader = { nextIndex: fromIndex, isOverdue: false };
    this.#wasRead = true;
    this.#reader = reader;
    this.#changed();
    return this.#pieces(reader, gone, prefix);
  }

  async *#pieces(reader: ReplayReader, gone: AbortSignal, prefix: Uint8Array): AsyncGenerator<Uint8Array> {
    const wake = (): void => this.#changed();
    const cancelTimer = this.#options.setTimer(PREFIX_MS, () => {
      reader.isOverdue = true;
      wake();
    });
    gone.addEventListener('abort', wake, { once: true });
    try {
      let before = prefix;
      while (this.#reader === reader && !gone.aborted) {
        const piece = this.#take(reader);
        if (piece.length > 0 || (before.length > 0 && reader.isOverdue)) {
          yield before.length > 0 ? concatBytes(before, piece) : piece;
          before = EMPTY;
        } else if (this.#isOver) return;
        else await this.#change.promise;
      }
    } finally {
      cancelTimer();
      gone.removeEventListener('abort', wake);
      this.#leave(reader);
    }
  }

  #leave(reader: ReplayReader): void {
    if (this.#reader !== reader) return;
    this.#reader = undefined;
    this.#changed();
    if (!this.#isOver || reader.nextIndex < this.#nextIndex) this.#options.onUnread();
  }

  #take(reader: ReplayReader): Uint8Array {
    const records: Uint8Array[] = [];
    for (let bytes = 0; bytes < PIECE_BYTES;) {
      const record = this.#kept[reader.nextIndex - this.#firstKept]?.record ?? this.#sealNext();
      if (record === undefined) break;
      reader.nextIndex += 1;
      bytes += record.length;
      records.push(record);
    }
    const [only = EMPTY] = records;
    return records.length > 1 ? concatBytes(...records) : only;
  }

  #sealNext(): Uint8Array | undefined {
    const plan = this.#plans.shift();
    if (plan === undefined) return undefined;
    this.#waitingBytes -= bytesOf(plan);
    const record = this.#seal(plan);
    this.#keep(record);
    this.#isOver = plan.kind !== 'pad' && plan.last === true;
    this.#changed();
    return record;
  }

  #seal(plan: Plan): Uint8Array {
    const { records } = this.#answer;
    switch (plan.kind) {
      case 'head':
        return records.sealHead(plan.data, plan);
      case 'data':
        return records.sealData(plan.data, plan);
      case 'pad':
        return records.sealPad();
    }
  }

  #keep(record: Uint8Array): void {
    this.#kept.push({ record, atMs: this.#options.now() });
    this.#keptBytes += record.length;
    this.#nextIndex += 1;
    this.#count();
    this.trim();
  }

  /** Lets go of records that are not to be kept any longer. Never of what the reader has still to take. */
  trim(): void {
    const isScarce = this.#options.memory.isScarce();
    const oldestMs = this.#options.now() - KEPT_MS;
    const mayGo = Math.min(this.#reader?.nextIndex ?? this.#nextIndex, this.#nextIndex - 1) - this.#firstKept;
    let count = 0;
    for (; count < mayGo; count++) {
      const { record, atMs } = this.#kept[count] ?? { record: EMPTY, atMs: 0 };
      if (!isScarce && this.#keptBytes <= KEPT_BYTES && atMs > oldestMs) break;
      this.#keptBytes -= record.length;
    }
    if (count === 0) return;
    this.#kept.splice(0, count);
    this.#firstKept += count;
    this.#count();
  }

  get #roomBytes(): number {
    if (this.#options.memory.isScarce()) return SCARCE_BYTES;
    return this.hasReader ? WAITING_BYTES : UNREAD_BYTES;
  }

  /** Tells what is held now. */
  #count(): void {
    const records = this.#plans.length + this.#kept.length;
    const bytes = this.#isDropped ? 0 : this.#waitingBytes + this.#keptBytes + records * RECORD_BYTES;
    const change = bytes - this.#countedBytes;
    this.#countedBytes = bytes;
    if (change !== 0) this.#options.memory.count(change);
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}

function bytesOf(plan: Plan): number {
  return plan.kind === 'pad' ? 0 : plan.data.length;
}
