/**
 * The failures that `core` reports to whoever called it, as one closed union of codes. What a code looks like on the
 * wire (status, `type`, shape) is the gateway's business; `gateway/service-errors.ts` has their statuses, and a code
 * without one does not compile.
 *
 * `TypeError` and `RangeError` are not in here: they mean that our own code is wrong, and end as a plain 500.
 */
import type { InferenceErrorCode } from './inference/error-codes.ts';

/** Those that any part of `core` may have, and those of its rooms. */
export type ServiceErrorCode =
  | InferenceErrorCode
  /** The request asks for something that the chosen model or engine can't do. */
  | 'unsupported'
  /** The request is malformed or contradicts itself. */
  | 'invalid_request'
  /** More work is waiting already than the service takes on; later it may not be. */
  | 'overloaded'
  /** The service is stopping and takes no more work. */
  | 'shutting_down';

interface ServiceErrorOptions {
  readonly cause?: unknown;
  /** The part of the call that is at fault, where one can be named. */
  readonly field?: CallField | undefined;
  readonly excess?: PromptExcess | undefined;
}

/** Of a prompt that is too long: how many tokens it has, or as many as were counted, and how many a conversation may have. */
export interface PromptExcess {
  readonly promptTokens: number;
  readonly contextTokens: number;
}

/** The parts of a call of a model that can be at fault. What a wire style calls them is the gateway's business. */
export type CallField = 'model' | 'prompt' | 'toolChoice' | 'responseFormat';

/** A failure that its caller may see: `message` is written for them, and never holds a prompt, a key or a path. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ServiceErrorCode;
  readonly field: CallField | undefined;
  readonly excess: PromptExcess | undefined;

  constructor(code: ServiceErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.field = options.field;
    this.excess = options.excess;
  }
}
