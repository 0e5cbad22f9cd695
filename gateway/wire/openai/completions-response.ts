/**
 * OpenAI text completions, the answer: what the model port gives, as one `text_completion` or as a stream of them.
 * Pure: the id and the time are passed in.
 */
import type { LanguageModelV4FinishReason, LanguageModelV4GenerateResult } from '@ai-sdk/provider';
import type { ModelStreamPart } from '../../../core/inference/model-port.ts';
import { encodeStream, wholeFinish, type StreamEncoder } from '../answer-stream.ts';
import { DONE_EVENT, encodeEvent } from '../event-stream.ts';
import { openaiCompletions } from './dialect.ts';
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

/** See `encodeStream`. */
export function encodeCompletionStream(
  envelope: CompletionEnvelope,
  parts: AsyncIterable<ModelStreamPart>,
  options: StreamOptions,
): AsyncGenerator<string> {
  return encodeStream(new ChunkEncoder(envelope, options), parts);
}

class ChunkEncoder implements StreamEncoder {
  readonly fail = openaiCompletions.encodeStreamError;
  readonly #common: object;
  readonly #echo: string;
  readonly #includeUsage: boolean;

  constructor(envelope: CompletionEnvelope, { includeUsage }: StreamOptions) {
    this.#common = common(envelope);
    this.#echo = envelope.echo;
    this.#includeUsage = includeUsage;
  }

  begin(): string {
    return this.#chunk(this.#echo);
  }

  encode(part: ModelStreamPart): string {
    if (part.type === 'text-delta') return this.#chunk(part.delta);
    if (part.type !== 'finish') return '';
    const last = this.#chunk('', finishReason(part.finishReason));
    return this.#includeUsage
      ? last + encodeEvent({ ...this.#common, choices: [], usage: encodeUsage(part.usage) })
      : last;
  }

  end(): string {
    return DONE_EVENT;
  }

  /** Nothing for no text, but where it says the end. */
  #chunk(text: string, reason: string | null = null): string {
    if (text === '' && reason === null) return '';
    const noUsage = this.#includeUsage ? { usage: null } : {};
    return encodeEvent({ ...this.#common, choices: [choice(text, reason)], ...noUsage });
  }
}

function common({ id, created, model }: CompletionEnvelope): object {
  return { id, object: 'text_completion', created, model, system_fingerprint: null };
}

function choice(text: string, reason: string | null): object {
  return { text, index: 0, logprobs: null, finish_reason: reason };
}

/** Raw text knows of no tools: whatever else ended it counts as its end. */
function finishReason(reason: LanguageModelV4FinishReason): string {
  const finish = wholeFinish(reason);
  if (finish === 'length') return 'length';
  return finish === 'content-filter' ? 'content_filter' : 'stop';
}
