/**
 * Sends a request until its answer has begun, and no longer. What has an effect carries one idempotency key on all
 * attempts, so that it happens once however often it arrives: the gateway then names the call that was first, and that
 * one's answer is read. The key is forgotten when the gateway restarts, so after that nothing is repeated.
 */
import { formatBase64url } from '../../channel/base64url.ts';
import type { AnswerHead } from '../../channel/head.ts';
import { encodeRequestHead, IDEMPOTENCY_KEY_BYTES } from '../../channel/head.ts';
import { HINT } from '../../channel/hint.ts';
import { findJsonObject } from '../../channel/json.ts';
import type { PosternErrorCode } from './errors.ts';
import { HintError, isUnreached, PathError, PosternError } from './errors.ts';
import type { InnerRequest } from './inner-request.ts';
import { attached, resumed } from './resume.ts';
import type { AnswerEvents, SealedCall } from './sealed-call.ts';
import { sealCall, takeBody, takeHead } from './sealed-call.ts';
import type { Sessions } from './sessions.ts';

/** An answer whose head has come. */
export interface BegunAnswer {
  readonly head: AnswerHead;
  /** What follows the head. */
  readonly events: AnswerEvents;
}

interface AnsweredCall extends BegunAnswer {
  /** The attempt that it is the answer to. */
  readonly answered: SealedCall;
}

/** An error in JSON. */
const MAX_REFUSAL_BYTES = 65_536;

/**
 * @param calls is given each call before it is sent, so that they can be cancelled
 * @throws PosternError, or the signal's reason
 */
export async function dispatch(
  sessions: Sessions,
  request: InnerRequest,
  calls: SealedCall[],
  signal: AbortSignal,
): Promise<BegunAnswer> {
  const { body, isSafe, ...inner } = request;
  const { crypto } = sessions.options.platform;
  const once = isSafe ? {} : { idempotencyKey: crypto.randomBytes(IDEMPOTENCY_KEY_BYTES) };
  const head = encodeRequestHead({ ...inner, bodyBytes: body.length, ...once });
  const retry = new Retry(sessions, isSafe);
  for (;;) {
    const call = await sealCall(sessions, head, body, signal).catch((error: unknown) => retry.give(error));
    if (!isSafe) assertSameRun(call, calls);
    calls.push(call);
    try {
      const { answered, ...begun } = await begin(sessions, call, calls, signal);
      for (const other of calls) if (other !== answered) other.answer.erase();
      return begun;
    } catch (error) {
      retry.judge(error, call);
    }
  }
}

/** @throws PosternError if what was sent before may have been done by a gateway that has forgotten it */
function assertSameRun({ session }: SealedCall, earlier: readonly SealedCall[]): void {
  const isSame = earlier.every((call) => call.session.terms.boot === session.terms.boot);
  if (!isSame) throw new PosternError('restarted');
}

/** Decides which failures are worth another attempt, and what may be said when there is none. */
class Retry {
  readonly #sessions: Sessions;
  readonly #isSafe: boolean;
  #attemptsLeft: number;
  #heededHint = false;
  /**
   * An earlier attempt has effects, perhaps. That goes for one that a hint came for as well: anybody can send one behind
   * a request that did arrive.
   */
  #mayBeDone = false;

  /** Each path may fail once, and the first one twice: its connection may only have been old. */
  constructor(sessions: Sessions, isSafe: boolean) {
    this.#sessions = sessions;
    this.#isSafe = isSafe;
    this.#attemptsLeft = sessions.options.paths.inOrder.length;
  }

  /** Returns if the request may be sent again. @throws what else is to be said of it */
  judge(error: unknown, call: SealedCall): void {
    if (error instanceof HintError) this.#heed(error, call);
    else if (!isNotThere(error)) throw error;
    else {
      const path = error instanceof PathError ? error : undefined;
      if (path?.wasNeverSent !== true) this.#mayBeDone = true;
      if (this.#attemptsLeft-- <= 0) this.give(new PosternError(path?.hint ?? 'offline', { cause: error }));
    }
  }

  /** `offline`, its like and `busy` invite to ask again, which is right only as long as nothing can have been done. @throws */
  give(error: unknown): never {
    const invites = isUnreached(error) || (error instanceof PosternError && error.code === 'busy');
    if (invites && this.#mayBeDone && !this.#isSafe) throw new PosternError('unanswered', { cause: error });
    throw error;
  }

  #heed(error: HintError, call: SealedCall): void {
    this.#mayBeDone = true;
    const isUseful = error.hint === HINT.unknownSession || error.hint === HINT.callNumber;
    if (this.#heededHint || !isUseful) this.give(new PosternError(codeOf(error.hint)));
    this.#heededHint = true;
    this.#sessions.heed(error, call.session);
  }
}

/** The request did not arrive, as far as one can tell. */
function isNotThere(error: unknown): boolean {
  return error instanceof PathError || (error instanceof PosternError && error.code === 'records_gone');
}

function codeOf(hint: number): PosternErrorCode {
  if (hint === HINT.tooManyCalls || hint === HINT.rateLimited) return 'busy';
  if (hint === HINT.shuttingDown) return 'offline';
  return hint === HINT.handshakeRefused || hint === HINT.unknownSession ? 'refused' : 'incompatible';
}

async function begin(
  sessions: Sessions,
  call: SealedCall,
  calls: readonly SealedCall[],
  signal: AbortSignal,
): Promise<AnsweredCall> {
  const events = resumed(sessions, call, call.events, signal);
  const head = await takeHead(events);
  if (head.status !== 409 || calls.length === 1) return { head, events, answered: call };
  const body = await takeBody(events, MAX_REFUSAL_BYTES);
  const first = findFirst(body);
  if (first === undefined) return { head, events: replay(body), answered: call };
  return beginWith(sessions, findCall(calls, first), signal);
}

/** Which call was the first with this idempotency key, if that is what the refusal says. */
function findFirst(body: Uint8Array): { readonly sid: unknown; readonly n: unknown } | undefined {
  const { error, sid, n } = findJsonObject(body) ?? {};
  const isDone = typeof error === 'object' && error !== null && 'code' in error && error.code === 'already_dispatched';
  return isDone ? { sid, n } : undefined;
}

/** @throws PosternError if the keys of that call are not here any more */
function findCall(calls: readonly SealedCall[], { sid, n }: { sid: unknown; n: unknown }): SealedCall {
  const found = calls.find(
    ({ reference }) => formatBase64url(reference.sessionId) === sid && reference.callNumber === n,
  );
  if (found === undefined || found.answer.isOver) throw new PosternError('answer_lost');
  return found;
}

async function beginWith(sessions: Sessions, call: SealedCall, signal: AbortSignal): Promise<AnsweredCall> {
  // The gateway has it, whatever came of its answer.
  call.answer.attach();
  const events = resumed(sessions, call, attached(sessions, call, signal), signal);
  try {
    return { head: await takeHead(events), events, answered: call };
  } catch (error) {
    if (!isNotThere(error)) throw error;
    throw new PosternError('answer_lost', { cause: error });
  }
}

async function* replay(body: Uint8Array): AnswerEvents {
  yield { type: 'data', data: body };
  yield { type: 'end' };
}
