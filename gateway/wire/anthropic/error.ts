/** Anthropic's error body: `{type: 'error', error: {type, message}}`, in answers and in streams alike. */
import type { ErrorCode, OutwardError } from '../../errors.ts';

/** https://platform.claude.com/docs/en/api/errors */
type AnthropicErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'not_found_error'
  | 'request_too_large'
  | 'rate_limit_error'
  | 'api_error'
  | 'overloaded_error';

const TYPES: Readonly<Record<ErrorCode, AnthropicErrorType>> = {
  already_dispatched: 'invalid_request_error',
  approval_expired: 'invalid_request_error',
  approval_needs_code: 'invalid_request_error',
  approval_settled: 'invalid_request_error',
  too_many_invites: 'invalid_request_error',
  bad_request: 'invalid_request_error',
  invalid_request: 'invalid_request_error',
  prompt_too_long: 'invalid_request_error',
  unsupported: 'invalid_request_error',
  unauthenticated: 'authentication_error',
  agent_not_found: 'not_found_error',
  agent_scope_denied: 'permission_error',
  cross_site: 'permission_error',
  forbidden: 'permission_error',
  foreign_host: 'permission_error',
  pairing_denied: 'permission_error',
  secure_channel_required: 'permission_error',
  model_not_found: 'not_found_error',
  not_found: 'not_found_error',
  idempotency_key_reused: 'invalid_request_error',
  invite_over: 'invalid_request_error',
  invite_used: 'invalid_request_error',
  records_gone: 'invalid_request_error',
  request_timeout: 'invalid_request_error',
  method_not_allowed: 'invalid_request_error',
  misdirected: 'invalid_request_error',
  unsupported_media_type: 'invalid_request_error',
  not_implemented: 'invalid_request_error',
  body_too_large: 'request_too_large',
  headers_too_large: 'invalid_request_error',
  rate_limited: 'rate_limit_error',
  too_many_approvals: 'rate_limit_error',
  internal: 'api_error',
  engine_failed: 'api_error',
  // What a client may repeat later, unchanged: those that are 503.
  channel_unavailable: 'overloaded_error',
  identity_unavailable: 'overloaded_error',
  insufficient_resources: 'overloaded_error',
  overloaded: 'overloaded_error',
  shutting_down: 'overloaded_error',
  storage_full: 'api_error',
  storage_unavailable: 'api_error',
};

/** Only by these words do agents tell that they must compact a conversation before they go on. */
const PROMPT_TOO_LONG = 'prompt is too long';

/** By this Anthropic's tool runner knows to go on without a thread, with the whole conversation in each request. */
const NO_THREAD = { error_code: 'thread_unsupported_request' } as const;

export function encodeAnthropicError({ code, message, param }: OutwardError): object {
  const text = code === 'prompt_too_long' ? `${PROMPT_TOO_LONG}: ${message}` : message;
  const details = param === 'thread' ? { details: NO_THREAD } : {};
  return { type: 'error', error: { type: TYPES[code], message: text, ...details } };
}
