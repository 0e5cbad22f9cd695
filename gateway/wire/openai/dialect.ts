/**
 * OpenAI's styles, which tell of errors alike. What is asked for at an address that no style has is told in the one of
 * chat completions.
 */
import type { Dialect, WireError } from '../dialect.ts';
import { encodeEvent, eventStream } from '../event-stream.ts';
import { CHAT_FIELDS, encodeOpenAiError, type FieldNames } from './error.ts';

/** @param fields what the style calls the parts of a call */
export function openAiDialect(own: Pick<Dialect, 'name' | 'paths'>, fields: FieldNames): Dialect {
  const encodeError = (error: WireError): object => encodeOpenAiError(error, fields);
  // The last event: `[DONE]` would call the answer whole.
  return { ...own, stream: eventStream, encodeError, encodeStreamError: (error) => encodeEvent(encodeError(error)) };
}

export const openai = openAiDialect({ name: 'openai', paths: ['/chat/completions'] }, CHAT_FIELDS);

export const openaiCompletions = openAiDialect(
  { name: 'openai', paths: ['/completions'] },
  { ...CHAT_FIELDS, prompt: 'prompt' },
);
