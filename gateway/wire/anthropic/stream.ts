/**
 * Anthropic messages, the answer as a stream of events. Pure.
 *
 *     message_start ping (content_block_start content_block_delta* content_block_stop)* message_delta message_stop
 *
 * or, from any point on, `error` and nothing more. https://platform.claude.com/docs/en/build-with-claude/streaming
 *
 * The port tells how many tokens a prompt has only with `finish`, so `message_start` counts none and `message_delta`,
 * whose counts are those of the whole message, has all of them. To count beforehand would be to wait in line twice, and
 * perhaps to load a model twice, where others wait too.
 */
import { promptCountOf, type ModelStreamPart } from '../../../core/inference/model-port.ts';
import type { OutwardError } from '../../errors.ts';
import { encodeStream, type StreamEncoder } from '../answer-stream.ts';
import { BlockSequence } from './blocks.ts';
import { anthropic } from './dialect.ts';
import {
  encodeStop,
  encodeUsage,
  messageStart,
  textBlock,
  thinkingBlock,
  THINKING_SIGNATURE,
  toolUseBlock,
  type MessageEnvelope,
} from './response.ts';
import { encodeNamedEvent } from '../event-stream.ts';

/** See `encodeStream`. */
export function encodeMessageStream(
  envelope: MessageEnvelope,
  parts: AsyncIterable<ModelStreamPart>,
): AsyncGenerator<string> {
  return encodeStream(new EventEncoder(envelope), parts);
}

/** An event's name and its `type` are the same. */
function event(type: string, fields: object = {}): string {
  return encodeNamedEvent(type, { type, ...fields });
}

const SIGNATURE_DELTA = { type: 'signature_delta', signature: THINKING_SIGNATURE } as const;

type Part<Type extends ModelStreamPart['type']> = Extract<ModelStreamPart, { type: Type }>;

class EventEncoder implements StreamEncoder {
  readonly #envelope: MessageEnvelope;
  readonly #blocks = new BlockSequence();
  readonly #callIds = new Set<string>();
  #hasBegun = false;

  constructor(envelope: MessageEnvelope) {
    this.#envelope = envelope;
  }

  encode(part: ModelStreamPart): string {
    return part.type === 'stream-start' ? '' : this.#open(promptCountOf(part)) + this.#events(part);
  }

  fail(error: OutwardError): string {
    return this.#open() + anthropic.encodeStreamError(error);
  }

  /** What every stream begins with; nothing the second time. The first part after the start has the prompt's length. */
  #open(promptTokens = 0): string {
    if (this.#hasBegun) return '';
    this.#hasBegun = true;
    return event('message_start', { message: messageStart(this.#envelope, promptTokens) }) + event('ping');
  }

  #events(part: ModelStreamPart): string {
    switch (part.type) {
      case 'text-start':
        return this.#blocks.begin({ key: `text ${part.id}`, start: textBlock() });
      case 'text-delta':
        return part.delta === '' ? '' : this.#blocks.write(`text ${part.id}`, { type: 'text_delta', text: part.delta });
      case 'text-end':
        return this.#blocks.end(`text ${part.id}`);
      case 'reasoning-start':
        return this.#blocks.begin({ key: `thinking ${part.id}`, start: thinkingBlock(), last: SIGNATURE_DELTA });
      case 'reasoning-delta':
        return this.#think(part);
      case 'reasoning-end':
        return this.#blocks.end(`thinking ${part.id}`);
      case 'tool-input-start':
        return this.#beginCall(part.id, part.toolName);
      case 'tool-input-delta':
        return this.#blocks.write(`call ${part.id}`, { type: 'input_json_delta', partial_json: part.delta });
      case 'tool-input-end':
        return this.#blocks.end(`call ${part.id}`);
      case 'tool-call':
        return this.#call(part);
      case 'finish':
        return this.#finish(part);
      default:
        return '';
    }
  }

  #think({ id, delta }: Part<'reasoning-delta'>): string {
    if (delta === '') return '';
    const deltas = this.#envelope.showThinking ? [{ type: 'thinking_delta', thinking: delta }] : [];
    return this.#blocks.write(`thinking ${id}`, ...deltas);
  }

  #beginCall(id: string, toolName: string): string {
    this.#callIds.add(id);
    const key = `call ${id}`;
    return this.#blocks.begin({ key, start: toolUseBlock(id, toolName) }) + this.#blocks.write(key);
  }

  /** Providers that do not stream arguments announce a call only by this. */
  #call({ toolCallId, toolName, input }: Part<'tool-call'>): string {
    const key = `call ${toolCallId}`;
    if (this.#callIds.has(toolCallId)) return this.#blocks.end(key);
    const delta = { type: 'input_json_delta', partial_json: input };
    return this.#beginCall(toolCallId, toolName) + this.#blocks.write(key, delta) + this.#blocks.end(key);
  }

  #finish(part: Part<'finish'>): string {
    const delta = { ...encodeStop(part), stop_details: null, container: null };
    return (
      this.#blocks.endAll() + event('message_delta', { delta, usage: encodeUsage(part.usage) }) + event('message_stop')
    );
  }
}
