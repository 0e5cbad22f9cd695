/**
 * How long a request's texts are, known before any of it is sent to a runner: what can't fit into a context is refused
 * here, and neither copied nor tokenised.
 */
import { ServiceError } from '../../errors.ts';
import type { GenerateRequest, LoadedModel } from './runner/protocol.ts';

/** The longest tokens of vocabularies in use are runs of 128 spaces or dashes; this is twice that. */
const MAX_TOKEN_LENGTH = 256;

/** @throws {ServiceError} `prompt_too_long` for more text than so many tokens can be */
export function refuseEndlessPrompt(request: GenerateRequest, { contextTokens }: LoadedModel): void {
  const { input, tools, responseFormat } = request;
  if (textLength([input, tools, responseFormat], contextTokens * MAX_TOKEN_LENGTH) === undefined) {
    throw promptTooLong(`has more text than ${contextTokens} tokens can hold`, contextTokens);
  }
}

/** @param what after "The prompt" */
export function promptTooLong(what: string, contextTokens: number): ServiceError {
  return new ServiceError(
    'prompt_too_long',
    `The prompt ${what}, but this model's context window holds ${contextTokens}, the answer included.`,
    { field: 'prompt' },
  );
}

/** The characters of all strings in a value. @returns undefined where they are more than `most` */
function textLength(value: unknown, most: number): number | undefined {
  let length = 0;
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next === 'string') length += next.length;
    else if (typeof next === 'object' && next !== null) for (const one of Object.values(next)) waiting.push(one);
    if (length > most) return undefined;
  }
  return length;
}
