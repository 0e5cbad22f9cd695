/** One call of a device, from its first record until nobody can want its answer any more. */
import { bytesToHex } from '@noble/hashes/utils.js';
import type { AbortReason, CallReference } from '../../channel/head.ts';
import { decodeCallHeader } from '../../channel/envelope.ts';
import type { PublicKey } from '../../channel/keys.ts';
import type { Purpose } from '../../channel/purpose.ts';
import type { CallEvent, ReceivedCall } from '../../channel/received-call.ts';
import { within, type SetTimer } from '../../core/timer.ts';
import { ReplayBuffer, KEPT_MS, type AnswerMemory } from './replay-buffer.ts';
import type { SealedSource } from './source.ts';

type HeadEvent = Extract<CallEvent, { readonly type: 'head' }>;

/** How long an answer goes on whose reader is gone. */
export const UNREAD_MS = KEPT_MS;
/** The same for a pairing: its device tries again within seconds, and its owner is asked for as long. */
const UNREAD_PAIRING_MS = 15_000;
/** For a reader to take the record that says why its call ends, before its transport is closed. */
const CLOSE_GRACE_MS = 1000;

/** Where an answer goes. */
type AnswerClient = Pick<SealedSource, 'gone' | 'cut'>;

interface SealedCallOptions {
  /** Of its device. */
  readonly memory: AnswerMemory;
  readonly now: () => number;
  readonly setTimer: SetTimer;
  /** Called when nobody can want it any more. */
  readonly onDone: (call: SealedCall) => void;
}

export class SealedCall {
  readonly reference: CallReference;
  readonly deviceKey: PublicKey;
  /** Of the session that it belongs to. */
  readonly purpose: Purpose;
  readonly log: ReplayBuffer;
  /** Whether its answer is worth keeping for one who did not get it all. */
  isKept = false;
  /** Whether it is one that can be taken up again: not of those that are about another call, its own or each other's. */
  canBeAttached = false;
  /** How long its work goes on without a reader. */
  unreadTimeoutMs: number;
  /** What stands before the first record. */
  readonly #header: Uint8Array;
  readonly #received: ReceivedCall;
  readonly #options: SealedCallOptions;
  readonly #stop = new AbortController();
  #cancelTimer: (() => void) | undefined;
  #source: AnswerClient | undefined;
  #onClosed: (() => void) | undefined;

  constructor(received: ReceivedCall, { answer, remoteStaticKey, purpose }: HeadEvent, options: SealedCallOptions) {
    this.#received = received;
    received.hold();
    this.#options = options;
    this.deviceKey = remoteStaticKey;
    this.purpose = purpose;
    this.unreadTimeoutMs = purpose.kind === 'session' ? UNREAD_MS : UNREAD_PAIRING_MS;
    this.#header = answer.header;
    this.reference = decodeCallHeader('callAnswer', answer.header);
    this.log = new ReplayBuffer(answer, { ...options, onUnread: () => this.#waitForReader() });
  }

  /** Fires when its work is to stop. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Something of its answer was said. */
  get hasAnswer(): boolean {
    return this.log.isBegun;
  }

  /** Its name among all calls. */
  get id(): string {
    return callId(this.reference);
  }

  /** Sends the answer where it was asked for. */
  answer(source: AnswerClient): AsyncIterable<Uint8Array> {
    return this.#send(source, 0, this.#header) ?? nothing();
  }

  /** Sends its records where they were asked for again. @returns undefined if they are not kept */
  answerAgain(source: AnswerClient, fromIndex: number): AsyncIterable<Uint8Array> | undefined {
    return this.#send(source, fromIndex);
  }

  #send(source: AnswerClient, fromIndex: number, prefix?: Uint8Array): AsyncIterable<Uint8Array> | undefined {
    const pieces = this.log.read(fromIndex, source.gone, prefix);
    if (pieces === undefined) return undefined;
    this.#source = source;
    this.#cancelTimer?.();
    return this.#watched(pieces);
  }

  /** Ends it from this side, with a reason that the device can believe. */
  abort(reason: AbortReason): void {
    this.finish(this.#received.kill(reason));
  }

  /** Ends it with the record that says so; the keys are gone already. */
  finish(lastRecord: Uint8Array | undefined): void {
    // What has come to its own end has nothing to stop.
    if (this.log.isOver) return;
    this.log.end(lastRecord);
    if (!this.log.hasReader) this.#received.release();
    this.#stop.abort();
  }

  /** Where memory is scarce: what is held only for a device that comes back is not worth it. */
  giveMemoryBack(): void {
    if (this.log.isOver && !this.log.hasReader) this.#done();
    else this.log.trim();
  }

  /** Nobody wants it: its request was given up, or its device is no more. */
  abandon(): void {
    this.#done();
  }

  /**
   * For the last record to be taken; a transport that does not take it in time is closed, and not waited for.
   * @returns whether it had to be
   */
  async close(): Promise<boolean> {
    this.isKept = false;
    if (!this.log.hasReader) {
      this.#done();
      return false;
    }
    const taken = new Promise<true>((resolve) => {
      this.#onClosed = () => resolve(true);
    });
    if (await within(CLOSE_GRACE_MS, taken, this.#options.setTimer)) return false;
    this.#source?.cut();
    return true;
  }

  async *#watched(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* pieces;
    } finally {
      if (!this.log.hasReader) {
        if (this.log.isOver) this.#delivered();
        this.#onClosed?.();
      }
    }
  }

  #delivered(): void {
    this.#received.release();
    if (this.isKept) this.#waitForReader();
    else this.#done();
  }

  /** The work goes on for a while, since a phone that was put away comes back. */
  #waitForReader(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#options.setTimer(this.unreadTimeoutMs, () => this.#done());
  }

  #done(): void {
    this.#cancelTimer?.();
    this.#received.kill();
    this.#received.release();
    this.finish(undefined);
    this.log.drop();
    this.#options.onDone(this);
  }
}

export function callId({ sessionId, callNumber }: CallReference): string {
  return `${bytesToHex(sessionId)} ${callNumber}`;
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // The first reader of an answer always finds its beginning.
}
