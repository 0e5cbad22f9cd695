/**
 * What each failure looks like from outside: one row for each code, and none can be missing. Texts that come with a
 * `ServiceError` were written for its reader; every other error is ours to read, in the log, and says nothing outside.
 */
import { ServiceError, type ServiceErrorCode } from '../core/errors.ts';
import { findDiskFault, type FoundDiskFault } from '../storage/disk-fault.ts';
import type { AccessClass, Refusal } from './policy.ts';
import { errorTypeOf, type ErrorType, type WireError } from './wire/dialect.ts';

/** Failures that the gateway itself finds, before any of its handlers runs. */
export type RequestErrorCode =
  | 'already_dispatched'
  | 'approval_expired'
  | 'approval_needs_code'
  | 'approval_settled'
  | 'bad_request'
  | 'body_too_large'
  | 'channel_unavailable'
  | 'headers_too_large'
  | 'idempotency_key_reused'
  | 'identity_unavailable'
  | 'invite_over'
  | 'invite_used'
  | 'method_not_allowed'
  | 'misdirected'
  | 'not_found'
  | 'not_implemented'
  | 'pairing_denied'
  | 'rate_limited'
  | 'records_gone'
  | 'request_timeout'
  | 'storage_full'
  | 'storage_unavailable'
  | 'too_many_approvals'
  | 'too_many_invites'
  | 'unsupported'
  | 'unsupported_media_type';

export type ErrorCode = ServiceErrorCode | Refusal | RequestErrorCode | 'internal';

const STATUSES: Readonly<Record<ErrorCode, number>> = {
  bad_request: 400,
  invalid_request: 400,
  prompt_too_long: 400,
  unsupported: 400,
  unauthenticated: 401,
  agent_not_found: 404,
  agent_scope_denied: 403,
  cross_site: 403,
  forbidden: 403,
  pairing_denied: 403,
  foreign_host: 403,
  model_not_found: 404,
  not_found: 404,
  method_not_allowed: 405,
  approval_expired: 408,
  request_timeout: 408,
  already_dispatched: 409,
  approval_needs_code: 409,
  approval_settled: 409,
  invite_used: 409,
  invite_over: 410,
  records_gone: 410,
  too_many_invites: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  misdirected: 421,
  idempotency_key_reused: 422,
  secure_channel_required: 426,
  rate_limited: 429,
  too_many_approvals: 429,
  headers_too_large: 431,
  internal: 500,
  engine_failed: 500,
  not_implemented: 501,
  channel_unavailable: 503,
  identity_unavailable: 503,
  insufficient_resources: 503,
  overloaded: 503,
  shutting_down: 503,
  storage_unavailable: 503,
  storage_full: 507,
};

/** Those whose status does not tell their type. */
const TYPES: Readonly<Partial<Record<ErrorCode, ErrorType>>> = {
  insufficient_resources: 'insufficient_resources',
  overloaded: 'insufficient_resources',
};

interface Kind {
  readonly code: ErrorCode;
  readonly status: number;
  readonly type: ErrorType;
}

function kindOf(code: ErrorCode): Kind {
  const status = STATUSES[code];
  return { code, status, type: TYPES[code] ?? errorTypeOf(status) };
}

/** Refused before a handler ran. The message is for the caller, and names the remedy where there is one. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly code: Refusal | RequestErrorCode;
  readonly param: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: Refusal | RequestErrorCode,
    message: string,
    {
      param,
      headers = {},
      cause,
    }: {
      readonly param?: string | undefined;
      readonly headers?: Readonly<Record<string, string>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.param = param;
    this.headers = headers;
  }
}

/** What a client should wait before it asks again; a short answer takes about this long. */
const RETRY_AFTER_SECONDS = '5';

/** A failure as it is told outside, in whichever style. */
export interface OutwardError extends WireError {
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;
}

export function outwardError(error: unknown): OutwardError {
  if (error instanceof RequestError) {
    const { message, param, headers } = error;
    return { ...kindOf(error.code), message, param, headers };
  }
  if (error instanceof ServiceError) {
    const headers = error.code === 'overloaded' ? { 'retry-after': RETRY_AFTER_SECONDS } : {};
    return { ...kindOf(error.code), message: error.message, param: undefined, field: error.field, headers };
  }
  const disk = findDiskFault(error);
  if (disk !== undefined) return storageFailure(disk);
  return {
    ...kindOf('internal'),
    message: 'Something went wrong inside the service. Its log says more.',
    param: undefined,
    headers: {},
  };
}

/** What could not be stored did not happen. */
function storageFailure({ fault }: FoundDiskFault): OutwardError {
  const code = fault === 'full' ? 'storage_full' : 'storage_unavailable';
  return {
    ...kindOf(code),
    message: STORAGE_MESSAGES[code],
    param: undefined,
    headers: { 'retry-after': RETRY_AFTER_SECONDS },
  };
}

const STORAGE_MESSAGES = {
  storage_full: 'The disk of the service is full, so this could not be stored. Its owner has to make room.',
  storage_unavailable: "The service can't reach what it has stored at the moment. Its log says more.",
} as const;

const REFUSAL_MESSAGES: Readonly<Record<Exclude<Refusal, 'forbidden'>, string>> = {
  unauthenticated:
    'This needs a valid access key: send it as "Authorization: Bearer svc-v1…" or as "x-api-key". Only programs on the same machine that run as the same user as the service need none.',
  foreign_host:
    'The name in the Host header may belong to another machine. Call this one 127.0.0.1 or localhost, or add the name to the setting server.hostnames.',
  cross_site:
    'A web page may not call this. Add its origin to the setting server.allowedOrigins, or call from outside a browser.',
  agent_not_found: 'There is no such agent. The built-in one is called "default".',
  agent_scope_denied: 'The credential is for another agent.',
  secure_channel_required: 'From another machine this is only possible through the secure channel of a paired device.',
};

/** What a route's class is closed to differs, and so does what to do. */
const FORBIDDEN_MESSAGES: Readonly<Partial<Record<AccessClass, string>>> = {
  channel: 'This is how a device gets in, and a call of a paired device is in already: call the route that is wanted.',
  dispatch:
    'The built-in agent can only be reached on the machine that the service runs on, by a program of the same user. Name another agent.',
  admin:
    'This can only be called on the machine that the service runs on, by a program of the same user, and not with an access key.',
};
const FORBIDDEN = 'This caller may not call this.';

/** RFC 9110 §11.6.1 and §15.5.22: these two statuses say in a header what would be accepted. */
const REFUSAL_HEADERS: Readonly<Partial<Record<Refusal, Readonly<Record<string, string>>>>> = {
  unauthenticated: { 'www-authenticate': 'Bearer' },
  secure_channel_required: { upgrade: 'svc-secure-v1' },
};

/** @param access of the route that was asked for */
export function refusalError(refusal: Refusal, access: AccessClass = 'public'): RequestError {
  const message = refusal === 'forbidden' ? (FORBIDDEN_MESSAGES[access] ?? FORBIDDEN) : REFUSAL_MESSAGES[refusal];
  return new RequestError(refusal, message, { headers: REFUSAL_HEADERS[refusal] ?? {} });
}
