/** OpenAI's error body: `{error: {message, type, param, code}}`. */
import type { CallField, WireError } from '../dialect.ts';

/** Codes that OpenAI's clients look for under names of their own. */
const OPENAI_CODES: Readonly<Record<string, string>> = {
  prompt_too_long: 'context_length_exceeded',
  unauthenticated: 'invalid_api_key',
};

interface OpenAiError {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string;
  };
}

/** What a style calls the parts of a call. */
export type FieldNames = Readonly<Record<CallField, string>>;

export const CHAT_FIELDS: FieldNames = {
  model: 'model',
  prompt: 'messages',
  toolChoice: 'tool_choice',
  responseFormat: 'response_format',
};

/** `code` is a help for people and logs; only `type` is stable. */
export function encodeOpenAiError({ message, type, param, field, code }: WireError, names: FieldNames): OpenAiError {
  const named = field === undefined ? null : names[field];
  return { error: { message, type, param: param ?? named, code: OPENAI_CODES[code] ?? code } };
}
