/** The session that calls are opened in. There is one at a time, made when it is first needed and again when it is over. */
import { HINT } from '../../channel/hint.ts';
import type { InitiatorSession, OutgoingCall } from '../../channel/initiator.ts';
import type { HintError } from './errors.ts';
import { PosternError } from './errors.ts';
import type { Paths } from './paths.ts';
import type { Platform } from './platform.ts';
import { abortable } from './platform.ts';
import type { Operation } from './transport.ts';

export interface SessionsOptions {
  readonly platform: Platform;
  readonly paths: Paths;
  /** Makes a session, over a way that it makes the current one. @throws PosternError */
  readonly handshake: (signal: AbortSignal) => Promise<InitiatorSession>;
  /** Where calls of these sessions go. */
  readonly callOperation: Operation;
  /** How long an answer that has begun may be silent. */
  readonly silentForMs: number;
}

export class Sessions {
  readonly options: SessionsOptions;
  #current: InitiatorSession | undefined;
  #handshake: Promise<InitiatorSession> | undefined;
  /** No caller's: a handshake is everybody's who waits for it. */
  readonly #closing = new AbortController();

  constructor(options: SessionsOptions) {
    this.options = options;
  }

  /** The next call, in a session that has room for it. @throws PosternError, or the signal's reason */
  async openCall(signal: AbortSignal): Promise<{ readonly session: InitiatorSession; readonly call: OutgoingCall }> {
    // Only a handshake shows which of several ways leads there.
    const known = this.options.paths.current === undefined ? undefined : this.#current;
    const call = known?.openCall(this.options.platform.now());
    if (known !== undefined && call !== undefined) return { session: known, call };
    if (this.#current !== undefined) this.leave(this.#current);
    const session = await abortable(this.#begin(), signal);
    const first = session.openCall(this.options.platform.now());
    // A session whose terms allow no call at all.
    if (first === undefined) throw new PosternError('incompatible');
    return { session, call: first };
  }

  /** New calls go into this session. */
  adopt(session: InitiatorSession): void {
    if (this.#current !== undefined) this.leave(this.#current);
    this.#current = session;
  }

  /** No new calls in this session. Those that run have keys of their own. */
  leave(session: InitiatorSession): void {
    session.retire();
    if (this.#current === session) this.#current = undefined;
  }

  /** What a hint is good for: another session, if it says that this one is not known. */
  heed({ hint }: HintError, session: InitiatorSession): void {
    if (hint === HINT.unknownSession) this.leave(session);
  }

  close(): void {
    this.#closing.abort(new PosternError('closed'));
    if (this.#current !== undefined) this.leave(this.#current);
  }

  #begin(): Promise<InitiatorSession> {
    this.#handshake ??= this.#makeSession().finally(() => {
      this.#handshake = undefined;
    });
    return this.#handshake;
  }

  async #makeSession(): Promise<InitiatorSession> {
    const session = await this.options.handshake(this.#closing.signal);
    this.adopt(session);
    return session;
  }
}
