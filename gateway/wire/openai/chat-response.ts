/**
 * OpenAI chat completions, the answer: what the model port gives, as one `chat.completion` or as a stream of
 * `chat.completion.chunk` events. Pure: ids and the time are passed in. Every field that OpenAI's own clients parse is
 * there, with the value that means "nothing" where we have nothing to say.
 */
import { createHash } from 'node:crypto';
import type {
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import type { ModelCall, ModelStreamPart } from '../../../core/inference/model-port.ts';
import { encodeStream, wholeFinish, type StreamEncoder, type WholeFinish } from '../answer-stream.ts';
import { DONE_EVENT, encodeEvent } from '../event-stream.ts';
import { openai } from './dialect.ts';
import { encodeUsage } from './usage.ts';

/** What is the same in an answer and in each chunk of one. */
export interface ChatEnvelope {
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  readonly model: string;
  readonly prefixHash: string;
}

/**
 * A stable name for the part of a prompt that conversations share: 32 hexadecimal digits over the system messages and
 * the tools' names, in whatever order those come.
 */
export function prefixHash({ prompt, tools = [] }: Pick<ModelCall, 'prompt' | 'tools'>): string {
  const system = prompt.flatMap((message) => (message.role === 'system' ? [message.content] : []));
  const names = tools.map((tool) => tool.name).toSorted();
  return createHash('sha256')
    .update(JSON.stringify([system, names]))
    .digest('hex')
    .slice(0, 32);
}

export function encodeChatResponse(envelope: ChatEnvelope, result: LanguageModelV4GenerateResult): object {
  const texts = result.content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const thoughts = result.content.flatMap((part) => (part.type === 'reasoning' ? [part.text] : []));
  const calls = result.content.flatMap((part) => (part.type === 'tool-call' ? [part] : []));
  const message = {
    role: 'assistant',
    content: texts.length === 0 && calls.length > 0 ? null : texts.join(''),
    refusal: null,
    annotations: [],
    ...(thoughts.length > 0 ? { reasoning_content: thoughts.join('') } : {}),
    ...(calls.length > 0
      ? {
          tool_calls: calls.map((call) => ({
            id: call.toolCallId,
            type: 'function',
            function: { name: call.toolName, arguments: call.input },
          })),
        }
      : {}),
  };
  return {
    ...common(envelope, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(result.finishReason) }],
    usage: encodeUsage(result.usage),
    prefix_hash: envelope.prefixHash,
  };
}

interface StreamOptions {
  /** Whether the client asked for a last chunk with the token counts. */
  readonly includeUsage: boolean;
}

/** See `encodeStream`. */
export function encodeChatStream(
  envelope: ChatEnvelope,
  parts: AsyncIterable<ModelStreamPart>,
  options: StreamOptions,
): AsyncGenerator<string> {
  return encodeStream(new ChunkEncoder(envelope, options), parts);
}

class ChunkEncoder implements StreamEncoder {
  readonly fail = openai.encodeStreamError;
  readonly #common: object;
  readonly #prefixHash: string;
  readonly #includeUsage: boolean;
  readonly #callIndexes = new Map<string, number>();

  constructor(envelope: ChatEnvelope, { includeUsage }: StreamOptions) {
    this.#common = common(envelope, 'chat.completion.chunk');
    this.#prefixHash = envelope.prefixHash;
    this.#includeUsage = includeUsage;
  }

  begin(): string {
    return encodeEvent({ ...this.#chunk({ role: 'assistant', content: '' }, null), prefix_hash: this.#prefixHash });
  }

  encode(part: ModelStreamPart): string {
    switch (part.type) {
      case 'text-delta':
        return this.#delta({ content: part.delta });
      case 'reasoning-delta':
        return this.#delta({ reasoning_content: part.delta });
      case 'tool-input-start': {
        const index = this.#callIndexes.size;
        this.#callIndexes.set(part.id, index);
        return this.#delta({
          tool_calls: [{ index, id: part.id, type: 'function', function: { name: part.toolName, arguments: '' } }],
        });
      }
      case 'tool-input-delta':
        return this.#delta({
          tool_calls: [{ index: this.#callIndexes.get(part.id) ?? 0, function: { arguments: part.delta } }],
        });
      case 'tool-call':
        // Providers that do not stream arguments announce a call only by this.
        return this.#callIndexes.has(part.toolCallId) ? '' : this.#wholeCall(part);
      case 'finish':
        return this.#finish(part.finishReason, part.usage);
      default:
        return '';
    }
  }

  end(): string {
    return DONE_EVENT;
  }

  #wholeCall(call: { readonly toolCallId: string; readonly toolName: string; readonly input: string }): string {
    const index = this.#callIndexes.size;
    this.#callIndexes.set(call.toolCallId, index);
    const whole = {
      index,
      id: call.toolCallId,
      type: 'function',
      function: { name: call.toolName, arguments: call.input },
    };
    return this.#delta({ tool_calls: [whole] });
  }

  #finish(reason: LanguageModelV4FinishReason, usage: LanguageModelV4Usage): string {
    const last = encodeEvent(this.#chunk({}, finishReason(reason)));
    return this.#includeUsage ? last + encodeEvent({ ...this.#common, choices: [], usage: encodeUsage(usage) }) : last;
  }

  #delta(delta: object): string {
    return encodeEvent(this.#chunk(delta, null));
  }

  #chunk(delta: object, reason: string | null): object {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: reason }];
    return this.#includeUsage ? { ...this.#common, choices, usage: null } : { ...this.#common, choices };
  }
}

function common({ id, created, model }: ChatEnvelope, object: string): object {
  return { id, object, created, model, system_fingerprint: null, service_tier: 'default' };
}

const FINISH_REASONS: Readonly<Record<WholeFinish, string>> = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
};

function finishReason(reason: LanguageModelV4FinishReason): string {
  return FINISH_REASONS[wholeFinish(reason)];
}
