/** OpenAI's error body: `{error: {message, type, param, code}}`. */
import type { WireError } from '../dialect.ts';

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

/** `code` is a help for people and logs; only `type` is stable. */
export function encodeOpenAiError({ message, type, param, code }: WireError): OpenAiError {
  return { error: { message, type, param: param ?? null, code: OPENAI_CODES[code] ?? code } };
}
