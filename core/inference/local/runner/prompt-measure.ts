/**
 * Counts a prompt's tokens piece by piece, before it is laid out and tokenised as a whole, which can't be interrupted.
 * A piece's edge may cut a token in two; for telling a prompt that fits from one that never will, that is near enough.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ChatHistoryItem } from 'node-llama-cpp';
import type { ContextLimit } from '../context-limit.ts';
import { promptTooLong } from '../prompt-size.ts';
import type { GenerateRequest } from './protocol.ts';

/** Some milliseconds' work. */
const PIECE_LENGTH = 16_384;

/** Of a UTF-16 code unit, in UTF-8. */
const MAX_BYTES = 3;

/** Prompts up to so many contexts are tokenised whole, to be told exactly how long they are. */
const MAX_CONTEXTS = 2;

interface MeasureOptions {
  readonly countTokens: (text: string) => number;
  readonly limit: ContextLimit;
  readonly signal: AbortSignal;
}

/**
 * @throws {ServiceError} `prompt_too_long`
 * @throws the signal's reason
 */
export async function measurePrompt(
  request: GenerateRequest,
  { countTokens, limit, signal }: MeasureOptions,
): Promise<void> {
  const most = limit.tokens * MAX_CONTEXTS;
  const texts = [...textsOf(request)];
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  // Most are: so short that they are soon tokenised, and that they would fit if each byte were a token.
  if (length <= PIECE_LENGTH && length * MAX_BYTES <= most) return signal.throwIfAborted();
  let tokens = 0;
  for (const text of texts) {
    for (let at = 0; at < text.length; at += PIECE_LENGTH) {
      // What is short is measured at once.
      if (text.length > PIECE_LENGTH) await nextTurn();
      signal.throwIfAborted();
      tokens += countTokens(text.slice(at, at + PIECE_LENGTH));
      if (tokens > most) throw promptTooLong(`has more than ${most} tokens`, limit, tokens);
    }
  }
}

function* textsOf({ input, tools = [], toolChoice }: GenerateRequest): Generator<string> {
  if ('rawText' in input) yield input.rawText;
  else for (const item of input.history) yield* textsOfItem(item);
  if (toolChoice?.type === 'none') return;
  for (const tool of tools) if (tool.type === 'function') yield JSON.stringify(tool);
}

function* textsOfItem(item: ChatHistoryItem): Generator<string> {
  if (item.type !== 'model') return void (yield typeof item.text === 'string' ? item.text : JSON.stringify(item.text));
  for (const part of item.response) {
    if (typeof part === 'string') yield part;
    else yield part.type === 'segment' ? part.text : JSON.stringify([part.params, part.result]);
  }
}
