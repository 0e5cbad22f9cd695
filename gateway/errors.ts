/**
 * What each failure looks like from outside: one row for each code, and none can be missing. Texts that come with a
 * `ServiceError` were written for its reader; every other error is ours to read, in the log, and says nothing outside.
 */
import { ServiceError, type ServiceErrorCode } from '../core/errors.ts';
import { mergeDeclarations } from '../core/merge-declarations.ts';
import { findDiskFault } from '../storage/disk-fault.ts';
import { approvalErrors } from './approval-errors.ts';
import type { AccessClass, Refusal } from './policy.ts';
import { responsesErrors } from './routes/responses/errors.ts';
import { refusalErrors, refusalHeaders, refusalMessage } from './refusal-errors.ts';
import { sealedErrors } from './sealed/errors.ts';
import { serviceErrors } from './service-errors.ts';
import { storageError, storageErrors } from './storage-errors.ts';
import { errorTypeOf, NO_RETRY, type ErrorType, type WireError } from './wire/dialect.ts';

/** Failures of HTTP, before any handler runs. */
const httpErrors = {
  bad_request: 400,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  body_too_large: 413,
  unsupported_media_type: 415,
  misdirected: 421,
  rate_limited: 429,
  headers_too_large: 431,
  not_implemented: 501,
  identity_unavailable: 503,
} as const;

/** Failures that the gateway itself finds. */
const requestErrors = mergeDeclarations(httpErrors, sealedErrors, approvalErrors, storageErrors, responsesErrors);
/** What `core` can't do, a wire style may refuse before it is asked. */
export type RequestErrorCode = keyof typeof requestErrors | 'unsupported';

export type ErrorCode = ServiceErrorCode | Refusal | RequestErrorCode | 'internal';

const STATUSES: Readonly<Record<ErrorCode, number>> = mergeDeclarations(requestErrors, refusalErrors, serviceErrors, {
  internal: 500,
});

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
    const { message, param } = error;
    const kind = kindOf(error.code);
    // What is not there now is not there a second later, either.
    const headers = kind.status === 501 ? { ...NO_RETRY, ...error.headers } : error.headers;
    return { ...kind, message, param, headers };
  }
  if (error instanceof ServiceError) {
    const headers = error.code === 'overloaded' ? { 'retry-after': RETRY_AFTER_SECONDS } : {};
    return {
      ...kindOf(error.code),
      message: error.message,
      param: undefined,
      field: error.field,
      excess: error.excess,
      headers,
    };
  }
  const disk = findDiskFault(error);
  if (disk !== undefined) {
    const { code, message } = storageError(disk.fault);
    return { ...kindOf(code), message, param: undefined, headers: { 'retry-after': RETRY_AFTER_SECONDS } };
  }
  return {
    ...kindOf('internal'),
    message: 'Something went wrong inside the service. Its log says more.',
    param: undefined,
    headers: {},
  };
}

/** @param access of the route that was asked for */
export function refusalError(refusal: Refusal, access: AccessClass = 'public'): RequestError {
  return new RequestError(refusal, refusalMessage(refusal, access), { headers: refusalHeaders(refusal) });
}
