/**
 * What can go wrong between a device and its gateway, as one closed union of codes. What a hint said is unauthenticated,
 * so the messages for it say that anybody on the way may have said it. `TypeError` means that this library was misused.
 */

const MESSAGES = {
  // The invite.
  invite_unreadable: 'This is not an invite, or not all of it. Copy the whole text from "SVC:" on, or scan it again.',
  invite_over: 'This invite has expired or was closed. Make a new one on the gateway: postern invite.',
  invite_used:
    'Another device has used this invite. If it was not yours, revoke it on the gateway; then make a new invite: postern invite.',
  pairing_denied: 'The owner of the gateway said no to this device. Ask them, and pair with a new invite.',
  approval_expired:
    'Nobody answered the question on the gateway in time. Make a new invite (postern invite), and say yes when it is used.',
  too_many_approvals:
    'Too many devices wait for approval on the gateway. Answer them (postern approvals), then pair again.',
  storage_full:
    'The disk of the gateway is full, so this device could not be paired. Make room there, then pair again.',
  gateway_unavailable:
    'The gateway can’t let this device in at the moment, or somebody in between says so. Its log says why: look there, then try again.',
  // The code. What a gateway says of it is not sealed, but for its last word.
  code_wrong:
    'The code was wrong three times, or somebody in between says so. Begin again: the gateway then shows a new one.',
  code_denied:
    'The owner of the gateway said no to this device, or somebody in between says so. Ask them, then begin again.',
  code_expired:
    'The time for the code is over, or somebody in between says so. A code is good for two minutes: begin again.',
  code_busy:
    'Others wait for a code there, or this device still does. Deny them on the gateway (postern approvals), or wait two minutes.',
  code_not_offered:
    'What answers there pairs no device by a code. Check the address, or pair with an invite: postern invite.',
  gateway_unproved:
    'What answers there does not know the code, so it is not the gateway that showed it. Check the network, and deny the request there.',
  // The way to the gateway.
  offline:
    'The gateway answers at none of its addresses, and no relay reaches it. Check that it runs, and the network of this device.',
  gateway_away:
    'None of the gateway’s addresses answers, and it is not connected to its relay or no longer lets this device in, or the relay says so. Check that it runs and has a network; then the date here, and "postern devices" at home.',
  relay_refused:
    'The relay lets this device through no more, or says so: its clock is days off, it was revoked, or the invite is over. Check the date here, and "postern devices" at home.',
  relay_busy:
    'The relay takes no more for now, or says so: too much at once, or the quota of the day is used up. Try again later.',
  refused:
    'The gateway does not know this device or this invite, or somebody in between says so. Try again; if it stays, pair again.',
  wrong_gateway: 'What answers at the address is not the gateway that this device was paired with. Check the network.',
  incompatible: 'This device and the gateway do not understand each other. Update both to the same version of Postern.',
  busy: 'The gateway has too much to do, or somebody in between says so. Try again in a moment.',
  // A call.
  body_too_large: 'The body is larger than the gateway takes. Send less at once.',
  revoked: 'This device was revoked on the gateway. To use it again, pair it with a new invite.',
  gateway_stopped: 'The gateway was stopped during the answer. Try again when it runs.',
  session_expired: 'The answer took longer than a session may live. Ask again.',
  gateway_failed: 'The gateway failed during the answer. Try again; its log has the reason.',
  cancelled: 'The call was cancelled.',
  truncated: 'The answer was cut off, and could not be picked up again. Check the network and ask again.',
  records_gone: 'The answer was cut off, and the gateway no longer has the rest. Ask again.',
  damaged: 'The answer was changed on its way. Check the network, and ask again.',
  answer_lost:
    'The gateway has done this already, but its answer is lost. Look at the result on the gateway before you repeat it.',
  restarted:
    'The gateway was restarted, so nobody can tell whether this was done. Look at the result before you repeat it.',
  unanswered:
    'The way to the gateway broke before an answer came, so nobody can tell whether this was done. Look at the result before you repeat it.',
  closed: 'This client is closed. Connect again.',
} as const;

export type PosternErrorCode = keyof typeof MESSAGES;

/** The message says what to do, and nothing that is secret. */
export class PosternError extends Error {
  override readonly name = 'PosternError';
  readonly code: PosternErrorCode;

  constructor(code: PosternErrorCode, options?: { readonly cause?: unknown }) {
    super(MESSAGES[code], options);
    this.code = code;
  }
}

/** No way led there, whoever said why: nothing was done. */
const UNREACHED: ReadonlySet<PosternErrorCode> = new Set([
  'offline',
  'gateway_away',
  'gateway_unavailable',
  'relay_refused',
  'relay_busy',
]);

export function isUnreached(error: unknown): boolean {
  return error instanceof PosternError && UNREACHED.has(error.code);
}

/** What somebody on the way gave as the reason. Only ever a hint. */
export type PathHint = 'gateway_away' | 'relay_refused' | 'relay_busy';

interface TransportErrorOptions {
  /** Not a byte of the request has left this device, so that it may be sent again whatever it does. */
  readonly wasNeverSent: boolean;
  readonly hint?: PathHint | undefined;
  readonly cause?: unknown;
}

/** What a transport fails with if it knows more than that the way broke. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly wasNeverSent: boolean;
  readonly hint: PathHint | undefined;

  constructor({ wasNeverSent, hint, cause }: TransportErrorOptions) {
    super(wasNeverSent ? 'no way there' : 'the way broke', { cause });
    this.wasNeverSent = wasNeverSent;
    this.hint = hint;
  }
}

/** One way to the gateway broke, or leads somewhere else. Never leaves this library: another way is tried first. */
export class PathError extends Error {
  override readonly name = 'PathError';

  get wasNeverSent(): boolean {
    return this.cause instanceof TransportError && this.cause.wasNeverSent;
  }

  get hint(): PathHint | undefined {
    return this.cause instanceof TransportError ? this.cause.hint : undefined;
  }
}

/** What came instead of an answer, in the clear. Never leaves this library either. */
export class HintError extends Error {
  override readonly name = 'HintError';
  readonly hint: number;

  constructor(hint: number) {
    super(`hint ${hint}`);
    this.hint = hint;
  }
}
