/** One session as the responder keeps it: its secrets, its call numbers, and the calls that are running. */
import { CallNumbers } from './call-numbers.ts';
import type { Crypto } from './crypto.ts';
import { encodeCallHeader } from './envelope.ts';
import { ChannelError } from './errors.ts';
import type { AbortReason } from './head.ts';
import type { TrafficSecrets } from './key-schedule.ts';
import { deriveAnswerKey, deriveRequestKey, eraseTrafficSecrets } from './key-schedule.ts';
import type { PublicKey, SessionId } from './keys.ts';
import type { Purpose } from './purpose.ts';
import type { CallCandidate, Answer, ReceivedCall } from './received-call.ts';
import { RecordOpener } from './record-opener.ts';
import { RecordSealer } from './record-sealer.ts';

export interface ResponderSessionOptions {
  readonly crypto: Crypto;
  readonly id: SessionId;
  readonly remoteStaticKey: PublicKey;
  readonly purpose: Purpose;
  readonly secrets: TrafficSecrets;
  readonly startedAtMs: number;
  readonly maxOpenCalls: number;
}

/** A call that was ended from this side, and the record that tells the other side, if there is still a way to. */
export interface EndedCall {
  readonly call: ReceivedCall;
  readonly lastRecord: Uint8Array | undefined;
}

/** What the table that holds a session decides, when record 0 of a call has opened. */
export interface SessionOwner {
  /** @throws ChannelError if the session has ended by then */
  confirm(nowMs: number): void;
  /** Whether the static key has room for one more open call, in all of its sessions. */
  hasRoomForCall(): boolean;
}

interface Arrival {
  readonly callNumber: number;
  readonly nowMs: number;
  readonly hasRoom: () => boolean;
}

export class ResponderSession {
  readonly #options: ResponderSessionOptions;
  readonly #numbers = new CallNumbers();
  readonly #calls = new Set<ReceivedCall>();
  #secrets: TrafficSecrets | undefined;
  #lastCallAtMs: number;

  constructor(options: ResponderSessionOptions) {
    this.#options = options;
    this.#secrets = options.secrets;
    this.#lastCallAtMs = options.startedAtMs;
  }

  get id(): SessionId {
    return this.#options.id;
  }

  get remoteStaticKey(): PublicKey {
    return this.#options.remoteStaticKey;
  }

  get startedAtMs(): number {
    return this.#options.startedAtMs;
  }

  get lastCallAtMs(): number {
    return this.#lastCallAtMs;
  }

  /** How many calls are open. The others are let go, with what their request may still have. */
  get openCalls(): number {
    for (const call of this.#calls) {
      if (call.isOpen) continue;
      call.kill();
      this.#calls.delete(call);
    }
    return this.#calls.size;
  }

  /**
   * The number arrived unauthenticated, so it is judged before any key is derived from it, and nothing is kept for it.
   * @throws ChannelError
   */
  receiveCall(callNumber: number, owner: SessionOwner): CallCandidate {
    if (this.#secrets === undefined) throw new ChannelError('unknown_session');
    if (!this.#numbers.isFree(callNumber)) throw new ChannelError('call_number');
    const { crypto, remoteStaticKey, purpose } = this.#options;
    return {
      remoteStaticKey,
      purpose,
      records: new RecordOpener(crypto, deriveRequestKey(crypto, this.#secrets, callNumber)),
      admit: (call, nowMs) => {
        owner.confirm(nowMs);
        return this.#admit(call, { callNumber, nowMs, hasRoom: () => owner.hasRoomForCall() });
      },
    };
  }

  /** No new calls from now on; those that run have keys of their own and go on. */
  retire(): void {
    if (this.#secrets !== undefined) eraseTrafficSecrets(this.#secrets);
    this.#secrets = undefined;
  }

  /** Ends the session and its calls at once. */
  end(reason: AbortReason): readonly EndedCall[] {
    this.retire();
    const open = this.openCalls === 0 ? [] : [...this.#calls];
    this.#calls.clear();
    return open.map((call) => ({ call, lastRecord: call.kill(reason) }));
  }

  /** A refused call's number is spent too: a copy that somebody held back must not be worth more than the original. */
  #admit(call: ReceivedCall, { callNumber, nowMs, hasRoom }: Arrival): Answer {
    if (this.#secrets === undefined) throw new ChannelError('unknown_session');
    if (!this.#numbers.spend(callNumber)) throw new ChannelError('call_number');
    if (this.openCalls >= this.#options.maxOpenCalls || !hasRoom()) throw new ChannelError('too_many_calls');
    this.#calls.add(call);
    this.#lastCallAtMs = nowMs;
    const { crypto, id } = this.#options;
    return {
      header: encodeCallHeader('callAnswer', { sessionId: id, callNumber }),
      records: new RecordSealer(crypto, deriveAnswerKey(crypto, this.#secrets, callNumber)),
    };
  }
}
