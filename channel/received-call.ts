/**
 * One call as the responder gets it: bytes of a CALL request in, events out. What opens the way to the answer is in the
 * event of the first record and nowhere else, since before that record has authenticated there is no call, only bytes.
 */
import { BytePrefix } from './byte-prefix.ts';
import type { CallHeader } from './envelope.ts';
import { CALL_HEADER_BYTES, decodeCallHeader } from './envelope.ts';
import { ChannelError } from './errors.ts';
import type { AbortReason } from './head.ts';
import { encodeAbortReason } from './head.ts';
import type { PublicKey } from './keys.ts';
import type { Purpose } from './purpose.ts';
import type { RecordEvent, RecordOpener } from './record-opener.ts';
import type { RecordSealer } from './record-sealer.ts';

export type CallEvent =
  | {
      readonly type: 'head';
      readonly data: Uint8Array;
      readonly answer: Answer;
      readonly remoteStaticKey: PublicKey;
      /** What the call's session was made for: of a pairing, which one. */
      readonly purpose: Purpose;
    }
  | Exclude<RecordEvent, { readonly type: 'head' }>;

export interface Answer {
  /** Stands before the first record. */
  readonly header: Uint8Array;
  readonly records: RecordSealer;
}

/** What a session gives for a number that was free when the header came. */
export interface CallCandidate {
  readonly records: RecordOpener;
  readonly remoteStaticKey: PublicKey;
  readonly purpose: Purpose;
  /** Called when record 0 has opened: spends the number. @throws ChannelError if another stream was faster */
  admit(call: ReceivedCall, nowMs: number): Answer;
}

export class ReceivedCall {
  readonly #find: (header: CallHeader, nowMs: number) => CallCandidate;
  readonly #header = new BytePrefix(CALL_HEADER_BYTES);
  #candidate: CallCandidate | undefined;
  #answer: Answer | undefined;
  #isDead = false;
  #isHeld = false;

  constructor(find: (header: CallHeader, nowMs: number) => CallCandidate) {
    this.#find = find;
  }

  /** Neither side of it can go on: the answer is complete, or the call was killed. */
  get isOver(): boolean {
    return this.#isDead || this.#answer?.records.isDone === true;
  }

  /** Whether it takes one of the places that its session and its device have. */
  get isOpen(): boolean {
    return this.#isHeld || !this.isOver;
  }

  /** Keeps its place beyond its last record, which may be in memory for as long as its reader likes. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Its answer was delivered, or is wanted by nobody: from now on it is open only until it is over. */
  release(): void {
    this.#isHeld = false;
  }

  /** See `RecordOpener.push`. Whatever is refused kills the call, and one that is over takes no more. @throws ChannelError */
  *push(bytes: Uint8Array, nowMs: number): Generator<CallEvent> {
    if (this.isOver) throw new ChannelError('record_refused');
    try {
      const rest = this.#header.take(bytes);
      const header = this.#header.complete;
      if (header === undefined) return;
      this.#candidate ??= this.#find(decodeCallHeader('callRequest', header), nowMs);
      for (const event of this.#candidate.records.push(rest)) yield this.#withAnswer(this.#candidate, event, nowMs);
    } catch (error) {
      this.kill();
      throw error;
    }
  }

  /** The transport has ended. @throws ChannelError `truncated` if the request has not */
  end(): void {
    try {
      if (this.#candidate === undefined) throw new ChannelError('truncated');
      this.#candidate.records.end();
    } catch (error) {
      this.kill();
      throw error;
    }
  }

  /**
   * Ends the call now and erases its keys.
   * @returns the ABORT record, if a reason is given and the answer was still to be finished
   */
  kill(reason?: AbortReason): Uint8Array | undefined {
    this.#isDead = true;
    this.#candidate?.records.erase();
    const records = this.#answer?.records;
    if (records === undefined || records.isDone) return undefined;
    if (reason !== undefined) return records.sealAbort(encodeAbortReason(reason));
    records.erase();
    return undefined;
  }

  #withAnswer(candidate: CallCandidate, event: RecordEvent, nowMs: number): CallEvent {
    this.#answer ??= candidate.admit(this, nowMs);
    // Who gives a request up wants no answer.
    if (event.type === 'abort') this.kill();
    if (event.type !== 'head') return event;
    const { remoteStaticKey, purpose } = candidate;
    return { ...event, answer: this.#answer, remoteStaticKey, purpose };
  }
}
