/** In whose style an error is told: its route's, or what the request shows of its client where no route says it. */
import type { IncomingHttpHeaders } from 'node:http';
import type { OutwardError } from '../errors.ts';
import { withoutAlias } from '../path-alias.ts';
import { encodeAnthropicError } from './anthropic/error.ts';
import { encodeOllamaError } from './ollama/error.ts';
import { encodeOpenAiError } from './openai/error.ts';

export type EncodeError = (error: OutwardError) => object;

interface ErrorStyle {
  /** The one of the route that the request is for, if there is one and it has a style of its own. */
  readonly own: EncodeError | undefined;
  /** As the client wrote it. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/** OpenAI's where nothing says otherwise. */
export function errorEncoder({ own, url, headers }: ErrorStyle): EncodeError {
  if (own !== undefined && own !== encodeOpenAiError) return own;
  // Anthropic's clients send it with every request, and share routes with OpenAI's.
  if (headers['anthropic-version'] !== undefined) return encodeAnthropicError;
  return own ?? encoderOfPath(url);
}

function encoderOfPath(url: string): EncodeError {
  if (/^\/messages(?=[/?]|$)/.test(withoutAlias(url))) return encodeAnthropicError;
  return /^\/(?:v1\/)?api(?=[/?]|$)/.test(url) ? encodeOllamaError : encodeOpenAiError;
}
