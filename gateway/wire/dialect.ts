/**
 * What a wire style is to those who know no more of it: the gateway where no route has been found, and the second
 * laptop's server, which has no routes. Pure, and free of Node. `dialects.ts` has them all.
 */
import type { StreamFormat } from './stream-format.ts';

export interface Dialect {
  readonly name: 'openai' | 'responses' | 'anthropic' | 'ollama';
  /** The addresses that belong to this style alone, without their prefix; a final `*` is all that follows. */
  readonly paths: readonly string[];
  /** What its clients alone put in front of a path. */
  readonly prefix?: '/api';
  /** What its clients alone send with every request. */
  readonly clientHeader?: string;
  readonly stream: StreamFormat;
  readonly encodeError: (error: WireError) => object;
  /** The same as the last words of a stream that has begun; the answer is not whole then. */
  readonly encodeStreamError: (error: WireError) => string;
}

/** A failure as every style starts from it. */
export interface WireError {
  readonly code: string;
  /** Of HTTP. */
  readonly status: number;
  readonly type: ErrorType;
  readonly message: string;
  /** The field of the request that is at fault, as its client calls it. */
  readonly param: string | undefined;
  /** In its place: the part of the call that is at fault, which each style has a name of its own for. */
  readonly field?: CallField | undefined;
  /** Of a prompt that is too long: its tokens, or as many as were counted, and those that a conversation may have. */
  readonly excess?: { readonly promptTokens: number; readonly contextTokens: number } | undefined;
}

/** As `core` names them. */
export type CallField = 'model' | 'prompt' | 'toolChoice' | 'responseFormat';

/** The contract's `type` of an error: three of its own, and those that the styles' own standards have for the rest. */
export type ErrorType =
  | 'invalid_request_error'
  | 'internal_error'
  | 'insufficient_resources'
  | 'authentication_error'
  | 'permission_error'
  | 'rate_limit_error'
  | 'upgrade_required';

/** By this the SDKs of OpenAI and Anthropic leave off what they do after any 5xx. */
export const NO_RETRY = { 'x-should-retry': 'false' } as const;

/** Of those that HTTP's classes of statuses do not tell. */
const TYPES: Readonly<Partial<Record<number, ErrorType>>> = {
  401: 'authentication_error',
  403: 'permission_error',
  426: 'upgrade_required',
  429: 'rate_limit_error',
  501: 'invalid_request_error',
  507: 'insufficient_resources',
};

/** The type of a failure with this status, unless its code has another one. */
export function errorTypeOf(status: number): ErrorType {
  return TYPES[status] ?? (status >= 500 ? 'internal_error' : 'invalid_request_error');
}
