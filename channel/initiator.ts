/** The client's side of the channel: makes a session and opens calls in it. Pure, like all of this folder. */
import { AnswerReader } from './answer-reader.ts';
import { CALL_NUMBERS } from './call-numbers.ts';
import type { Crypto } from './crypto.ts';
import { encodeCallHeader } from './envelope.ts';
import type { Handshaken, InitiatorOptions } from './handshake.ts';
import { initiate } from './handshake.ts';
import type { TrafficSecrets } from './key-schedule.ts';
import { deriveAnswerKey, deriveRequestKey, eraseTrafficSecrets } from './key-schedule.ts';
import type { SessionTerms } from './payload.ts';
import { RecordOpener } from './record-opener.ts';
import { RecordSealer } from './record-sealer.ts';

/** A handshake whose first message is made. */
export interface StartedSession {
  readonly message1: Uint8Array;
  /** Takes message 2, once. @throws ChannelError `handshake_refused` */
  finish(message2: Uint8Array, nowMs: number): InitiatorSession;
}

export function startSession(options: InitiatorOptions): StartedSession {
  const greeting = initiate(options);
  return {
    message1: greeting.message,
    finish: (message2, nowMs) => new InitiatorSession(options.crypto, greeting.finish(message2), nowMs),
  };
}

/** One call: seal the request, send it behind the header, and read the answer. */
export interface OutgoingCall {
  readonly callNumber: number;
  /** Stands before the first record of the request. */
  readonly header: Uint8Array;
  readonly request: RecordSealer;
  readonly answer: AnswerReader;
}

export class InitiatorSession {
  readonly terms: SessionTerms;
  readonly #crypto: Crypto;
  readonly #startedAtMs: number;
  #secrets: TrafficSecrets | undefined;
  #nextCallNumber = 0;
  #lastCallAtMs: number;

  constructor(crypto: Crypto, { terms, secrets }: Handshaken, nowMs: number) {
    this.#crypto = crypto;
    this.terms = terms;
    this.#secrets = secrets;
    this.#startedAtMs = nowMs;
    this.#lastCallAtMs = nowMs;
  }

  /**
   * The next call. Its number is taken before anything is sealed and never again: a retry is another call.
   * @returns `undefined` if it is time for another session: this one is old, idle, used up or retired
   */
  openCall(nowMs: number): OutgoingCall | undefined {
    if (this.#isOver(nowMs)) this.retire();
    if (this.#secrets === undefined) return undefined;
    this.#lastCallAtMs = nowMs;
    const header = { sessionId: this.terms.sessionId, callNumber: this.#nextCallNumber++ };
    const { callNumber } = header;
    const answerKey = deriveAnswerKey(this.#crypto, this.#secrets, callNumber);
    return {
      callNumber,
      header: encodeCallHeader('callRequest', header),
      request: new RecordSealer(this.#crypto, deriveRequestKey(this.#crypto, this.#secrets, callNumber)),
      answer: new AnswerReader(encodeCallHeader('callAnswer', header), new RecordOpener(this.#crypto, answerKey)),
    };
  }

  /** No new calls from now on; those that run have keys of their own and go on. */
  retire(): void {
    if (this.#secrets !== undefined) eraseTrafficSecrets(this.#secrets);
    this.#secrets = undefined;
  }

  #isOver(nowMs: number): boolean {
    const { rekeyAfterMs, idleAfterMs, callNumbers } = this.terms;
    if (this.#nextCallNumber >= Math.min(callNumbers, CALL_NUMBERS)) return true;
    return nowMs - this.#startedAtMs >= rekeyAfterMs || nowMs - this.#lastCallAtMs >= idleAfterMs;
  }
}
