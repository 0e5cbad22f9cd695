/**
 * What each failure looks like from outside: one row for each code, and none can be missing. Texts that come with a
 * `ServiceError` were written for its reader; every other error is ours to read, in the log, and says nothing outside.
 */
import { ServiceError, type ServiceErrorCode } from '../core/errors.ts';
import { findDiskFault, type FoundDiskFault } from '../storage/disk-fault.ts';
import type { AccessClass, Refusal } from './policy.ts';

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
  | 'unsupported_media_type';

export type ErrorCode = ServiceErrorCode | Refusal | RequestErrorCode | 'internal';

/** The contract's `type` of an error: three of its own, and those that the styles' own standards have for the rest. */
export type ErrorType =
  | 'invalid_request_error'
  | 'internal_error'
  | 'insufficient_resources'
  | 'authentication_error'
  | 'permission_error'
  | 'rate_limit_error'
  | 'upgrade_required';

interface ErrorRow {
  readonly status: number;
  readonly type: ErrorType;
}

const TABLE: Readonly<Record<ErrorCode, ErrorRow>> = {
  bad_request: { status: 400, type: 'invalid_request_error' },
  invalid_request: { status: 400, type: 'invalid_request_error' },
  prompt_too_long: { status: 400, type: 'invalid_request_error' },
  unsupported: { status: 400, type: 'invalid_request_error' },
  unauthenticated: { status: 401, type: 'authentication_error' },
  agent_not_found: { status: 404, type: 'invalid_request_error' },
  agent_scope_denied: { status: 403, type: 'permission_error' },
  cross_site: { status: 403, type: 'permission_error' },
  forbidden: { status: 403, type: 'permission_error' },
  pairing_denied: { status: 403, type: 'permission_error' },
  foreign_host: { status: 403, type: 'permission_error' },
  model_not_found: { status: 404, type: 'invalid_request_error' },
  not_found: { status: 404, type: 'invalid_request_error' },
  method_not_allowed: { status: 405, type: 'invalid_request_error' },
  approval_expired: { status: 408, type: 'invalid_request_error' },
  request_timeout: { status: 408, type: 'invalid_request_error' },
  already_dispatched: { status: 409, type: 'invalid_request_error' },
  approval_needs_code: { status: 409, type: 'invalid_request_error' },
  approval_settled: { status: 409, type: 'invalid_request_error' },
  invite_used: { status: 409, type: 'invalid_request_error' },
  invite_over: { status: 410, type: 'invalid_request_error' },
  records_gone: { status: 410, type: 'invalid_request_error' },
  too_many_invites: { status: 409, type: 'invalid_request_error' },
  body_too_large: { status: 413, type: 'invalid_request_error' },
  unsupported_media_type: { status: 415, type: 'invalid_request_error' },
  misdirected: { status: 421, type: 'invalid_request_error' },
  idempotency_key_reused: { status: 422, type: 'invalid_request_error' },
  secure_channel_required: { status: 426, type: 'upgrade_required' },
  rate_limited: { status: 429, type: 'rate_limit_error' },
  too_many_approvals: { status: 429, type: 'rate_limit_error' },
  headers_too_large: { status: 431, type: 'invalid_request_error' },
  internal: { status: 500, type: 'internal_error' },
  engine_failed: { status: 500, type: 'internal_error' },
  not_implemented: { status: 501, type: 'invalid_request_error' },
  channel_unavailable: { status: 503, type: 'internal_error' },
  identity_unavailable: { status: 503, type: 'internal_error' },
  insufficient_resources: { status: 503, type: 'insufficient_resources' },
  overloaded: { status: 503, type: 'insufficient_resources' },
  shutting_down: { status: 503, type: 'internal_error' },
  storage_unavailable: { status: 503, type: 'internal_error' },
  storage_full: { status: 507, type: 'insufficient_resources' },
};

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

/** A failure as every wire style starts from it. */
export interface OutwardError extends ErrorRow {
  readonly code: ErrorCode;
  readonly message: string;
  readonly param: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

export function outwardError(error: unknown): OutwardError {
  if (error instanceof RequestError) {
    return {
      ...TABLE[error.code],
      code: error.code,
      message: error.message,
      param: error.param,
      headers: error.headers,
    };
  }
  if (error instanceof ServiceError) {
    const headers = error.code === 'overloaded' ? { 'retry-after': RETRY_AFTER_SECONDS } : {};
    return { ...TABLE[error.code], code: error.code, message: error.message, param: error.param, headers };
  }
  const disk = findDiskFault(error);
  if (disk !== undefined) return storageFailure(disk);
  return {
    ...TABLE.internal,
    code: 'internal',
    message: 'Something went wrong inside the service. Its log says more.',
    param: undefined,
    headers: {},
  };
}

/** What could not be stored did not happen. */
function storageFailure({ fault }: FoundDiskFault): OutwardError {
  const code = fault === 'full' ? 'storage_full' : 'storage_unavailable';
  return {
    ...TABLE[code],
    code,
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
