/**
 * How long a request's texts are, known before any of it is sent to a runner: what can't fit into a context is refused
 * here, and neither copied nor tokenised.
 */
import { ServiceError } from '../../errors.ts';
import type { ContextLimit, LimitedBy } from './context-limit.ts';
import type { GenerateRequest, LoadedModel } from './runner/protocol.ts';

/** The longest tokens of vocabularies in use are runs of 128 spaces or dashes; this is twice that. */
const MAX_TOKEN_LENGTH = 256;

/** @throws {ServiceError} `prompt_too_long` for more text than so many tokens can be */
export function refuseEndlessPrompt({ input, tools, responseFormat }: GenerateRequest, { limit }: LoadedModel): void {
  if (textLength([input, tools, responseFormat], limit.tokens * MAX_TOKEN_LENGTH) === undefined) {
    throw promptTooLong(`has more text than ${limit.tokens} tokens can hold`, limit);
  }
}

/** About how many tokens a request's texts are: fewer than that, of most languages. */
export function estimateTokens({ input, tools }: GenerateRequest, most: number): number {
  // Looked at from the end: the conversation before the tools.
  const length = textLength([tools, input], most * CHARACTERS_PER_TOKEN, MAX_ESTIMATED_VALUES);
  return length === undefined ? most : Math.ceil(length / CHARACTERS_PER_TOKEN);
}

/** A request of more values is estimated by so many of them: looking at all would hold up other callers. */
const MAX_ESTIMATED_VALUES = 10_000;

/** English has four to five, source code three. */
const CHARACTERS_PER_TOKEN = 3;

const REASONS: Readonly<Record<LimitedBy, string>> = {
  setting: 'The setting inference.contextTokens of the service keeps it to that.',
  training: 'The model was trained for no more.',
  memory:
    'More does not fit into memory, whatever the setting inference.contextTokens says: a smaller model leaves more room.',
  guest: 'A web page cannot have it loaded with a longer one.',
};

/** @param what after "The prompt" @param promptTokens as many as were counted */
export function promptTooLong(what: string, { tokens, by }: ContextLimit, promptTokens?: number): ServiceError {
  return new ServiceError(
    'prompt_too_long',
    `The prompt ${what}, but this model's context window holds ${tokens}, the answer included. ${REASONS[by]}`,
    { field: 'prompt', excess: promptTokens === undefined ? undefined : { promptTokens, contextTokens: tokens } },
  );
}

/** A prompt that would fit, if the model were loaded with a longer context. */
export class ContextTooShort extends Error {
  override readonly name = 'ContextTooShort';
  /** With room for an answer. */
  readonly neededTokens: number;

  constructor(neededTokens: number) {
    super('the context is too short for this prompt');
    this.neededTokens = neededTokens;
  }
}

/** The characters of all strings in a value, or in so many of its values. @returns undefined where they are more than `most` */
function textLength(value: unknown, most: number, values = Infinity): number | undefined {
  let length = 0;
  const waiting: unknown[] = [value];
  for (let seen = 0; waiting.length > 0 && seen < values; seen += 1) {
    const next = waiting.pop();
    if (typeof next === 'string') length += next.length;
    else if (typeof next === 'object' && next !== null) for (const one of Object.values(next)) waiting.push(one);
    if (length > most) return undefined;
  }
  return length;
}
