/** Anthropic's messages. */
import type { Dialect } from '../dialect.ts';
import { encodeNamedEvent, eventStream } from '../event-stream.ts';
import { encodeAnthropicError } from './error.ts';

/** Names the version of its interface; its clients send it with every request. */
export const ANTHROPIC_VERSION = 'anthropic-version';

export const anthropic: Dialect = {
  name: 'anthropic',
  paths: ['/messages', '/messages/*'],
  // It shares other addresses with OpenAI's, the list of models for one.
  clientHeader: ANTHROPIC_VERSION,
  stream: eventStream,
  encodeError: encodeAnthropicError,
  encodeStreamError: (error) => encodeNamedEvent('error', encodeAnthropicError(error)),
};
