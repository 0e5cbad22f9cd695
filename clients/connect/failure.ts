/**
 * What this server says itself, where home has said nothing: one status for each failure, in the shape of the wire style
 * that was spoken. A failure that home tells of is home's answer and passes through as it is.
 */
import { errorTypeOf, NO_RETRY, type WireError } from '../../gateway/wire/dialect.ts';
import { dialectOf, type StyleHints } from '../../gateway/wire/dialects.ts';
import { PosternError, type PosternErrorCode } from '../sdk/index.ts';

/** What this server refuses by itself. */
type LocalCode =
  'bad_request' | 'cross_site' | 'forbidden' | 'foreign_host' | 'internal' | 'method_not_allowed' | 'overloaded';

type FailureCode = LocalCode | PosternErrorCode;

/** None can be missing. Those of pairing come from no call. */
const STATUSES: Readonly<Record<FailureCode, number>> = {
  bad_request: 400,
  forbidden: 403,
  foreign_host: 403,
  cross_site: 403,
  method_not_allowed: 405,
  overloaded: 503,
  internal: 500,

  offline: 503,
  gateway_away: 503,
  gateway_unavailable: 503,
  relay_refused: 503,
  relay_busy: 503,
  busy: 503,
  wrong_gateway: 502,
  incompatible: 502,
  refused: 401,
  revoked: 401,
  body_too_large: 413,
  cancelled: 502,
  gateway_stopped: 502,
  gateway_failed: 502,
  session_expired: 502,
  truncated: 502,
  records_gone: 502,
  damaged: 502,
  answer_lost: 502,
  restarted: 502,
  unanswered: 502,
  closed: 503,

  invite_unreadable: 500,
  invite_over: 500,
  invite_used: 500,
  pairing_denied: 500,
  approval_expired: 500,
  too_many_approvals: 500,
  storage_full: 500,
  code_wrong: 500,
  code_denied: 500,
  code_expired: 500,
  code_busy: 500,
  code_not_offered: 500,
  gateway_unproved: 500,
};

/** Nothing was done yet, so a client may ask again by itself. After all others it could be done twice. */
const REPEATABLE: ReadonlySet<FailureCode> = new Set([
  'offline',
  'gateway_away',
  'gateway_unavailable',
  'relay_refused',
  'relay_busy',
  'busy',
  'overloaded',
  'closed',
]);

/** The message is for whoever reads the client's error, and names the remedy. */
export class RequestRefused extends Error {
  override readonly name = 'RequestRefused';
  readonly code: LocalCode | 'body_too_large';
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: LocalCode | 'body_too_large', message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }
}

export interface Failure {
  readonly code: FailureCode;
  readonly status: number;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The words of an error that was not written for a client stay inside: they could quote its prompt. */
export function failureOf(error: unknown): Failure {
  const isOurs = error instanceof RequestRefused || error instanceof PosternError;
  const code = isOurs ? error.code : 'internal';
  const status = STATUSES[code];
  return {
    code,
    status,
    message: isOurs ? error.message : 'Something went wrong in "postern connect" itself. Ask again.',
    headers: {
      ...(error instanceof RequestRefused ? error.headers : {}),
      ...(status >= 500 && !REPEATABLE.has(code) ? NO_RETRY : {}),
    },
  };
}

/** The body, as clients of the address that was asked for read it. */
export function encodeFailure(failure: Failure, hints: StyleHints): object {
  return dialectOf(hints).encodeError(wireErrorOf(failure));
}

interface StreamType {
  /** The `content-type` of the answer. */
  readonly type: string;
}

/** The same in the middle of a stream; `undefined` for an answer that has no place for it. */
export function encodeLastWords(failure: Failure, { type, ...hints }: StyleHints & StreamType): string | undefined {
  const { stream, encodeStreamError } = dialectOf(hints);
  return type.startsWith(stream.contentType) ? encodeStreamError(wireErrorOf(failure)) : undefined;
}

function wireErrorOf({ code, status, message }: Failure): WireError {
  return { code, status, type: errorTypeOf(status), message, param: undefined };
}
