/** Anthropic's error body: `{type: 'error', error: {type, message}}`, in answers and in streams alike. */
import type { WireError } from '../dialect.ts';

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

const TYPES: Readonly<Partial<Record<number, AnthropicErrorType>>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  426: 'permission_error',
  429: 'rate_limit_error',
  501: 'invalid_request_error',
  // What a client may repeat later, unchanged.
  503: 'overloaded_error',
};

function typeOf(status: number): AnthropicErrorType {
  return TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
}

/** Only by these words do agents tell that they must compact a conversation before they go on, and by how much. */
function promptTooLong({ excess, message }: WireError): string {
  const much = excess === undefined ? '' : `${excess.promptTokens} tokens > ${excess.contextTokens} maximum. `;
  return `prompt is too long: ${much}${message}`;
}

/** By this Anthropic's tool runner knows to go on without a thread, with the whole conversation in each request. */
const NO_THREAD = { error_code: 'thread_unsupported_request' } as const;

export function encodeAnthropicError(error: WireError): object {
  const { code, status, message, param } = error;
  const text = code === 'prompt_too_long' ? promptTooLong(error) : message;
  const details = param === 'thread' ? { details: NO_THREAD } : {};
  return { type: 'error', error: { type: typeOf(status), message: text, ...details } };
}
