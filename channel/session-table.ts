/**
 * The sessions of one kind (sessions proper, invites, discovery). There is one table for each kind, so that a session
 * of one is simply not there for the routes of another. `session-states.ts` says what may become of one.
 *
 * Anybody can replay a recorded message 1, so pending sessions are cheap, few, and never at the cost of confirmed ones.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { equalBytes } from './bytes.ts';
import type { CallHeader } from './envelope.ts';
import { ChannelError } from './errors.ts';
import type { AbortReason } from './head.ts';
import type { PublicKey, SessionId } from './keys.ts';
import type { CallCandidate } from './received-call.ts';
import type { EndedCall, ResponderSession } from './responder-session.ts';
import type { SessionLimits } from './session-limits.ts';
import { SESSION_TRANSITIONS, type SessionEvent, type SessionState } from './session-states.ts';

export interface PendingSession {
  readonly session: ResponderSession;
  /** What made it, as a hash, and what was answered: the same question gets the same answer. */
  readonly greetingHash: Uint8Array;
  readonly message2: Uint8Array;
}

export class SessionTable {
  readonly #limits: SessionLimits;
  // Each in the order of arrival, the oldest first; the key is the session id in hexadecimal.
  readonly #pending = new Map<string, PendingSession>();
  readonly #confirmed = new Map<string, ResponderSession>();
  readonly #retired = new Set<ResponderSession>();

  constructor(limits: SessionLimits) {
    this.#limits = limits;
  }

  /** For the operator's eyes, and to see that nothing grows. */
  get counts(): { readonly pending: number; readonly confirmed: number; readonly retired: number } {
    return { pending: this.#pending.size, confirmed: this.#confirmed.size, retired: this.#retired.size };
  }

  /** The message 2 that answered the same message 1, while its session is pending. */
  findMessage2(greetingHash: Uint8Array, nowMs: number): Uint8Array | undefined {
    for (const pending of this.#pending.values()) {
      if (this.#isPendingOver(pending.session, nowMs)) continue;
      if (equalBytes(pending.greetingHash, greetingHash)) return pending.message2;
    }
    return undefined;
  }

  insert(pending: PendingSession): void {
    this.#dropOverduePending(pending.session.startedAtMs);
    const crowdedOut = this.#findCrowdedOut(pending.session.remoteStaticKey);
    if (crowdedOut !== undefined) this.#advance(crowdedOut, 'displaced');
    this.#pending.set(bytesToHex(pending.session.id), pending);
  }

  /** Whether a call of it might come, or might have come. */
  has(sessionId: SessionId): boolean {
    const id = bytesToHex(sessionId);
    return this.#pending.has(id) || this.#confirmed.has(id);
  }

  /** @throws ChannelError `unknown_session`, `call_number` */
  receiveCall({ sessionId, callNumber }: CallHeader, nowMs: number): CallCandidate {
    const id = bytesToHex(sessionId);
    const session = this.#pending.get(id)?.session ?? this.#confirmed.get(id);
    if (session === undefined || this.#isOver(session, nowMs)) throw new ChannelError('unknown_session');
    return session.receiveCall(callNumber, {
      confirm: (confirmedAtMs) => this.#confirm(session, confirmedAtMs),
      hasRoomForCall: () => this.#openCallsOf(session.remoteStaticKey) < this.#limits.openCallsPerKey,
    });
  }

  /** Ends, now and synchronously, all sessions of one static key; of all keys if none is given. */
  end(reason: AbortReason, remoteStaticKey?: PublicKey): readonly EndedCall[] {
    const all = [
      ...[...this.#pending.values()].map(({ session }) => session),
      ...this.#confirmed.values(),
      ...this.#retired,
    ];
    const ending = all.filter(
      (session) => remoteStaticKey === undefined || equalBytes(session.remoteStaticKey, remoteStaticKey),
    );
    for (const session of ending) this.#advance(session, 'ended');
    return ending.flatMap((session) => session.end(reason));
  }

  /** Erases what has had its time. The owner calls it every few seconds; refusing what is over does not depend on it. */
  sweep(nowMs: number, reason: AbortReason): readonly EndedCall[] {
    this.#dropOverduePending(nowMs);
    for (const session of this.#confirmed.values()) if (this.#isConfirmedOver(session, nowMs)) this.#retire(session);
    const over = [...this.#retired].filter((session) => session.openCalls === 0 || this.#isTooOld(session, nowMs));
    for (const session of over) this.#advance(session, 'ended');
    return over.flatMap((session) => session.end(reason));
  }

  /** The first record of a call has authenticated: both sides have the keys. */
  #confirm(session: ResponderSession, nowMs: number): void {
    // Looked up again: since the header came the session may have expired or been revoked.
    if (this.#isOver(session, nowMs)) throw new ChannelError('unknown_session');
    const displaced = this.#stateOf(session) === 'pending' ? this.#findRetirable(session.remoteStaticKey) : undefined;
    this.#advance(session, 'authenticated');
    if (displaced !== undefined) this.#retire(displaced);
  }

  /** A session that was retired has its calls still, and whoever makes new sessions must not have more for it. */
  #openCallsOf(remoteStaticKey: PublicKey): number {
    return [...this.#confirmed.values(), ...this.#retired]
      .filter((session) => equalBytes(session.remoteStaticKey, remoteStaticKey))
      .reduce((sum, session) => sum + session.openCalls, 0);
  }

  #dropOverduePending(nowMs: number): void {
    for (const { session } of this.#pending.values())
      if (this.#isPendingOver(session, nowMs)) this.#advance(session, 'displaced');
  }

  /** The key's own oldest goes first; beyond the limit for all, the oldest of the key that holds most. */
  #findCrowdedOut(remoteStaticKey: PublicKey): ResponderSession | undefined {
    const byKey = new Map<string, ResponderSession[]>();
    for (const { session } of this.#pending.values()) {
      const key = bytesToHex(session.remoteStaticKey);
      byKey.set(key, [...(byKey.get(key) ?? []), session]);
    }
    const own = byKey.get(bytesToHex(remoteStaticKey)) ?? [];
    if (own.length >= this.#limits.pendingPerKey) return own[0];
    if (this.#pending.size < this.#limits.pending) return undefined;
    return [...byKey.values()].reduce((most, held) => (held.length > most.length ? held : most))[0];
  }

  /** The key's own oldest; beyond the limit for all, the one that has been without a call for longest. */
  #findRetirable(remoteStaticKey: PublicKey): ResponderSession | undefined {
    const all = [...this.#confirmed.values()];
    const own = all.filter((session) => equalBytes(session.remoteStaticKey, remoteStaticKey));
    if (own.length >= this.#limits.confirmedPerKey) return own[0];
    if (all.length < this.#limits.confirmed) return undefined;
    return all.reduce((a, b) => (b.lastCallAtMs < a.lastCallAtMs ? b : a));
  }

  #isOver(session: ResponderSession, nowMs: number): boolean {
    const isPending = this.#pending.has(bytesToHex(session.id));
    return isPending ? this.#isPendingOver(session, nowMs) : this.#isConfirmedOver(session, nowMs);
  }

  #isPendingOver(session: ResponderSession, nowMs: number): boolean {
    return nowMs - session.startedAtMs >= this.#limits.pendingMs;
  }

  #isConfirmedOver(session: ResponderSession, nowMs: number): boolean {
    const { expiresAfterMs, idleAfterMs } = this.#limits;
    return nowMs - session.startedAtMs >= expiresAfterMs || nowMs - session.lastCallAtMs >= idleAfterMs;
  }

  #isTooOld(session: ResponderSession, nowMs: number): boolean {
    return nowMs - session.startedAtMs >= this.#limits.streamsEndAfterMs;
  }

  #retire(session: ResponderSession): void {
    this.#advance(session, 'displaced');
    if (session.openCalls === 0) this.#advance(session, 'ended');
  }

  #stateOf(session: ResponderSession): SessionState {
    const id = bytesToHex(session.id);
    if (this.#pending.get(id)?.session === session) return 'pending';
    if (this.#confirmed.get(id) === session) return 'confirmed';
    return this.#retired.has(session) ? 'retired' : 'gone';
  }

  /** @throws ChannelError `unknown_session` for what may not become of it */
  #advance(session: ResponderSession, event: SessionEvent): void {
    const state = this.#stateOf(session);
    const next = SESSION_TRANSITIONS[state][event];
    if (next === undefined) throw new ChannelError('unknown_session');
    if (next === state) return;
    const id = bytesToHex(session.id);
    this.#pending.delete(id);
    this.#confirmed.delete(id);
    this.#retired.delete(session);
    if (next === 'confirmed') this.#confirmed.set(id, session);
    else session.retire();
    if (next === 'retired') this.#retired.add(session);
  }
}
