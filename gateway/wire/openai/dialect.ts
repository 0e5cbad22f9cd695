/** OpenAI's chat completions and completions. What is asked for at an address that no style has is told in this one. */
import type { Dialect } from '../dialect.ts';
import { encodeEvent, eventStream } from '../event-stream.ts';
import { encodeOpenAiError } from './error.ts';

export const openai: Dialect = {
  name: 'openai',
  paths: ['/chat/completions', '/completions'],
  stream: eventStream,
  encodeError: encodeOpenAiError,
  // The last one: `[DONE]` would call the answer whole.
  encodeStreamError: (error) => encodeEvent(encodeOpenAiError(error)),
};
