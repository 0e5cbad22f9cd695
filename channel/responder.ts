/**
 * The gateway's side of the channel: answers handshakes, keeps the sessions they make, and takes their calls. Pure: it
 * has no clock, no socket and no timer; the time comes with every call, and `sweep` wants to be called now and then.
 *
 * How often a source may ask is the business of whoever holds the socket.
 */
import { concatBytes } from './bytes.ts';
import { CALL_NUMBERS } from './call-numbers.ts';
import type { Crypto, DhKeyPair } from './crypto.ts';
import type { Accepted } from './handshake.ts';
import { greet } from './handshake.ts';
import type { AbortReason } from './head.ts';
import type { Psk, PublicKey, SessionId } from './keys.ts';
import { asSessionId, ID_BYTES } from './keys.ts';
import type { SessionTerms } from './payload.ts';
import type { Purpose, PurposeKind } from './purpose.ts';
import { prologueOf } from './purpose.ts';
import { ReceivedCall } from './received-call.ts';
import type { EndedCall } from './responder-session.ts';
import { ResponderSession } from './responder-session.ts';
import type { SessionLimits } from './session-limits.ts';
import { SESSION_LIMITS } from './session-limits.ts';
import { SessionTable } from './session-table.ts';

export interface ResponderOptions {
  readonly crypto: Crypto;
  readonly staticKey: DhKeyPair;
  /** The psk of a paired device; `undefined` for strangers and the revoked. Synchronous, so that nothing comes between. */
  readonly findPsk: (remoteStaticKey: PublicKey) => Psk | undefined;
  /** A random name of this run, by which a client notices a restart. */
  readonly boot: string;
  readonly maxBodyBytes: number;
  readonly limits?: SessionLimits;
}

export interface Pairing {
  readonly purpose: Exclude<Purpose, { readonly kind: 'session' }>;
  readonly psk: Psk;
  readonly admit?: AdmitHandshake;
}

/**
 * Called when it is known who asks, before what is dear; what it throws refuses the handshake. Not called for a message 1
 * that is answered as it was before.
 */
export type AdmitHandshake = (remoteStaticKey: PublicKey) => void;

/** A session's psk is found when its static key is known. */
type HandshakeRequest =
  | Pairing
  | {
      readonly purpose: { readonly kind: 'session' };
      readonly psk?: undefined;
      readonly admit: AdmitHandshake | undefined;
    };

export class Responder {
  readonly #options: ResponderOptions;
  readonly #limits: SessionLimits;
  readonly #tables: Readonly<Record<PurposeKind, SessionTable>>;

  constructor(options: ResponderOptions) {
    this.#options = options;
    this.#limits = options.limits ?? SESSION_LIMITS;
    this.#tables = {
      session: new SessionTable(this.#limits),
      invite: new SessionTable(this.#limits),
      discovery: new SessionTable(this.#limits),
    };
  }

  /**
   * @returns message 2 for a device's message 1
   * @throws ChannelError `handshake_refused`, for whatever reason, and what `admit` throws
   */
  answerSession(message1: Uint8Array, nowMs: number, admit?: AdmitHandshake): Uint8Array {
    return this.#answer({ purpose: { kind: 'session' }, admit }, message1, nowMs);
  }

  /** The same for a pairing, whose secret the caller has found by its invite id or challenge. @throws ChannelError */
  answerPairing(pairing: Pairing, message1: Uint8Array, nowMs: number): Uint8Array {
    return this.#answer(pairing, message1, nowMs);
  }

  /** A call whose bytes are about to come, on a way that is open to sessions of these kinds. */
  receiveCall(...kinds: readonly [PurposeKind, ...PurposeKind[]]): ReceivedCall {
    return new ReceivedCall((header, nowMs) => {
      const kind = kinds.find((one) => this.#tables[one].has(header.sessionId)) ?? kinds[0];
      return this.#tables[kind].receiveCall(header, nowMs);
    });
  }

  /**
   * Ends all sessions proper of this static key, before it returns; what is left is to send the last records. A pairing
   * that goes on is another matter: it may be how the same device comes back, and it has its own secret.
   */
  revoke(remoteStaticKey: PublicKey): readonly EndedCall[] {
    const reason = { code: 'revoked', message: 'this device was revoked' };
    return this.#tables.session.end(reason, remoteStaticKey);
  }

  shutDown(): readonly EndedCall[] {
    return this.#eachTable((table) => table.end({ code: 'shutdown', message: 'the gateway is stopping' }));
  }

  /** Erases the keys of sessions that have had their time. */
  sweep(nowMs: number): readonly EndedCall[] {
    const reason: AbortReason = { code: 'expired', message: 'the session has ended' };
    return this.#eachTable((table) => table.sweep(nowMs, reason));
  }

  counts(kind: PurposeKind): SessionTable['counts'] {
    return this.#tables[kind].counts;
  }

  #answer(request: HandshakeRequest, message1: Uint8Array, nowMs: number): Uint8Array {
    const { crypto } = this.#options;
    const table = this.#tables[request.purpose.kind];
    const greetingHash = crypto.sha256(concatBytes(prologueOf(request.purpose), message1));
    const known = table.findMessage2(greetingHash, nowMs);
    if (known !== undefined) return known;

    const { remoteStaticKey, accepted } = this.#accept(request, message1);
    const id = asSessionId(crypto.randomBytes(ID_BYTES));
    const { message, secrets } = accepted.answer(this.#termsFor(id, nowMs));
    const maxOpenCalls = this.#limits.openCalls;
    const session = new ResponderSession({
      crypto,
      id,
      remoteStaticKey,
      purpose: request.purpose,
      secrets,
      startedAtMs: nowMs,
      maxOpenCalls,
    });
    table.insert({ session, greetingHash, message2: message });
    return message;
  }

  /** Cheap for strangers: who asks is looked up after one Diffie-Hellman, before all else. */
  #accept(
    { purpose, psk, admit }: HandshakeRequest,
    message1: Uint8Array,
  ): { remoteStaticKey: PublicKey; accepted: Accepted } {
    const { crypto, staticKey, findPsk } = this.#options;
    const greeting = greet({ crypto, staticKey, purpose, ...(psk === undefined ? {} : { psk }) }, message1);
    const { remoteStaticKey } = greeting;
    const found = psk ?? findPsk(remoteStaticKey);
    if (found === undefined) throw greeting.refuse();
    try {
      admit?.(remoteStaticKey);
    } catch (error) {
      greeting.refuse();
      throw error;
    }
    return { remoteStaticKey, accepted: greeting.accept(found) };
  }

  #termsFor(sessionId: SessionId, timeMs: number): SessionTerms {
    const { boot, maxBodyBytes } = this.#options;
    const { expiresAfterMs, idleAfterMs, rekeyAfterMs } = this.#limits;
    const callNumbers = CALL_NUMBERS;
    return { sessionId, expiresAfterMs, idleAfterMs, rekeyAfterMs, maxBodyBytes, callNumbers, boot, timeMs };
  }

  #eachTable(end: (table: SessionTable) => readonly EndedCall[]): readonly EndedCall[] {
    return Object.values(this.#tables).flatMap(end);
  }
}
