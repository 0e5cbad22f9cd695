/**
 * OpenAI text completions, the answer: what the model port gives, as one `text_completion` or as a stream of them.
 * Pure: the id and the time are passed in.
 */
import type { LanguageModelV4FinishReason, LanguageModelV4GenerateResult } from '@ai-sdk/provider';
import { ServiceError } from '../../../core/errors.ts';
import type { ModelStreamPart } from '../../../core/inference/model-port.ts';
import { outwardError } from '../../errors.ts';
import { DONE_EVENT, encodeEvent } from '../event-stream.ts';
import { openai } from './dialect.ts';
import { encodeUsage } from './usage.ts';

/** What is the same in an answer and in each chunk of one. */
export interface CompletionEnvelope {
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  readonly model: string;
  /** What the answer begins with; empty unless the client asked for an echo. */
  readonly echo: string;
}

export function encodeCompletionResponse(envelope: CompletionEnvelope, result: LanguageModelV4GenerateResult): object {
  const texts = result.content.map((part) => (part.type === 'text' ? part.text : ''));
  return {
    ...common(envelope),
    choices: [choice(envelope.echo + texts.join(''), finishReason(result.finishReason))],
    usage: encodeUsage(result.usage),
  };
}

interface StreamOptions {
  /** Whether the client asked for a last chunk with the token counts. */
  readonly includeUsage: boolean;
}

/**
 * Never throws: a failure in mid-stream becomes an error event, which is the only way left to tell of it. It is the last
 * one: `[DONE]` would call the answer whole.
 * @param parts the port's stream, from `stream-start` on
 */
export async function* encodeCompletionStream(
  envelope: CompletionEnvelope,
  parts: AsyncIterable<ModelStreamPart>,
  options: StreamOptions,
): AsyncGenerator<string> {
  try {
    for await (const chunk of chunks(envelope, parts, options)) yield encodeEvent({ ...common(envelope), ...chunk });
    yield DONE_EVENT;
  } catch (error) {
    yield openai.encodeStreamError(outwardError(error));
  }
}

async function* chunks(
  { echo }: CompletionEnvelope,
  parts: AsyncIterable<ModelStreamPart>,
  { includeUsage }: StreamOptions,
): AsyncGenerator<object> {
  const noUsage = includeUsage ? { usage: null } : {};
  if (echo !== '') yield { choices: [choice(echo, null)], ...noUsage };
  for await (const part of parts) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'text-delta' && part.delta !== '') yield { choices: [choice(part.delta, null)], ...noUsage };
    if (part.type !== 'finish') continue;
    yield { choices: [choice('', finishReason(part.finishReason))], ...noUsage };
    if (includeUsage) yield { choices: [], usage: encodeUsage(part.usage) };
    return;
  }
  throw new ServiceError('engine_failed', 'The model stopped before its answer was complete.');
}

function common({ id, created, model }: CompletionEnvelope): object {
  return { id, object: 'text_completion', created, model, system_fingerprint: null };
}

function choice(text: string, reason: string | null): object {
  return { text, index: 0, logprobs: null, finish_reason: reason };
}

/** Raw text knows of no tools: whatever else ended it counts as its end. */
function finishReason({ unified }: LanguageModelV4FinishReason): string {
  if (unified === 'length') return 'length';
  return unified === 'content-filter' ? 'content_filter' : 'stop';
}
