/**
 * Open Responses, the stream: what the model port gives, as it comes, in named events that are numbered from 0. Pure
 * but for what it is told to call with the final response. Schemas: https://www.openresponses.org/specification.
 *
 *     response.created  response.in_progress
 *     for each item:    response.output_item.added … response.output_item.done
 *       message:        content_part.added  output_text.delta*  output_text.done  content_part.done
 *       function_call:  function_call_arguments.delta*  function_call_arguments.done
 *       reasoning:      reasoning_summary_part.added  reasoning_summary_text.delta* .done  reasoning_summary_part.done
 *     response.completed | response.incomplete | response.failed
 *     [DONE]
 *
 * An item begins with the first thing that there is to say in it, so none is ever empty. Thoughts are streamed as their
 * own summary: the schema's events for raw thoughts make OpenAI's client throw, and that client's make a schema fail.
 */
import type { LanguageModelV4FinishReason, LanguageModelV4Usage } from '@ai-sdk/provider';
import type { ModelStreamPart } from '../../../core/inference/model-port.ts';
import { outwardError, type OutwardError } from '../../errors.ts';
import { encodeStream, type StreamEncoder } from '../answer-stream.ts';
import { DONE_EVENT, encodeNamedEvent } from '../event-stream.ts';
import { CHAT_FIELDS, encodeOpenAiError } from '../openai/error.ts';
import { outputText, type FunctionCallItem, type Item, type MessageItem } from './items.ts';
import {
  calledAs,
  encodeResource,
  ending,
  outputId,
  reasoningItem,
  type ResponseEnvelope,
  type ResponseResource,
} from './resource.ts';

interface StreamOptions {
  /** Unix time in seconds. */
  readonly now: () => number;
  /** Called with the final response before the client hears of it; not when it failed. @returns what the client hears */
  readonly onAnswer: (response: ResponseResource) => ResponseResource;
}

/** See `encodeStream`. */
export function encodeResponseStream(
  envelope: ResponseEnvelope,
  parts: AsyncIterable<ModelStreamPart>,
  options: StreamOptions,
): AsyncGenerator<string> {
  return encodeStream(new EventEncoder(envelope, options), parts);
}

/** A block or a call as the port names it. */
interface Block {
  readonly kind: 'text' | 'reasoning' | 'call';
  readonly id: string;
  readonly toolName?: string;
}

/** Two blocks of different kinds may have one id. */
function keyOf({ kind, id }: Block): string {
  return `${kind} ${id}`;
}

/** An item that the model is in the middle of. */
interface OpenItem {
  readonly kind: Block['kind'];
  readonly index: number;
  readonly id: string;
  readonly call: { readonly call_id: string; readonly name: string; readonly namespace?: string } | undefined;
  text: string;
}

type Call = Extract<ModelStreamPart, { type: 'tool-call' }>;

class EventEncoder implements StreamEncoder {
  readonly #envelope: ResponseEnvelope;
  readonly #options: StreamOptions;
  /** By `keyOf` their block. */
  readonly #open = new Map<string, OpenItem>();
  /** In the order of their indexes; those still open as far as they have come. */
  readonly #output: Item[] = [];
  /** A message that is whole if more follows; if nothing does, the end tells whether it was cut. */
  #endedText: OpenItem | undefined;
  #sequenceNumber = 0;

  constructor(envelope: ResponseEnvelope, options: StreamOptions) {
    this.#envelope = envelope;
    this.#options = options;
  }

  begin(): string {
    const response = encodeResource(this.#envelope, { status: 'in_progress', output: [] });
    return this.#event('response.created', { response }) + this.#event('response.in_progress', { response });
  }

  encode(part: ModelStreamPart): string {
    switch (part.type) {
      case 'text-delta':
        return this.#grow({ kind: 'text', id: part.id }, part.delta);
      case 'reasoning-delta':
        return this.#grow({ kind: 'reasoning', id: part.id }, part.delta);
      case 'text-end':
        return this.#endText({ kind: 'text', id: part.id });
      case 'reasoning-end': {
        const item = this.#take({ kind: 'reasoning', id: part.id });
        return item === undefined ? '' : this.#close(item, 'completed');
      }
      case 'tool-input-start':
        return this.#start({ kind: 'call', id: part.id, toolName: part.toolName });
      case 'tool-input-delta':
        return this.#grow({ kind: 'call', id: part.id }, part.delta);
      case 'tool-call':
        return this.#endCall(part);
      case 'finish':
        return this.#finish(part.finishReason, part.usage);
      default:
        return '';
    }
  }

  end(): string {
    return DONE_EVENT;
  }

  fail(error: OutwardError): string {
    return this.#failed(error) + DONE_EVENT;
  }

  #failed(cause: OutwardError): string {
    const { code, message } = encodeOpenAiError(cause, CHAT_FIELDS).error;
    const ended = this.#settleText('completed');
    for (const item of this.#open.values()) this.#output[item.index] = this.#itemOf(item, 'incomplete');
    const response = encodeResource(this.#envelope, {
      status: 'failed',
      output: this.#output,
      error: { code, message },
    });
    return ended + this.#event('response.failed', { response });
  }

  #start(block: Block): string {
    const settled = this.#settleText('completed');
    const index = this.#output.length;
    const item: OpenItem = {
      kind: block.kind,
      index,
      id: outputId(this.#envelope, ITEM_TYPES[block.kind], index),
      call: block.kind === 'call' ? { call_id: block.id, ...this.#calledAs(block) } : undefined,
      text: '',
    };
    this.#open.set(keyOf(block), item);
    const empty = this.#itemOf(item, 'in_progress');
    this.#output.push(empty);
    return (
      settled + this.#event('response.output_item.added', { output_index: index, item: empty }) + this.#begun(item)
    );
  }

  #calledAs({ toolName = '' }: Block): ReturnType<typeof calledAs> {
    return calledAs(this.#envelope.tools, toolName);
  }

  /** Begins the block if it is new; but a call has a name, which only its own start tells. */
  #grow(block: Block, delta: string): string {
    if (delta === '') return '';
    const started = this.#open.has(keyOf(block)) || block.kind === 'call' ? '' : this.#start(block);
    const item = this.#open.get(keyOf(block));
    if (item === undefined) return '';
    item.text += delta;
    const logprobs = block.kind === 'text' ? NO_LOGPROBS : {};
    return started + this.#event(EVENTS[block.kind].delta, { ...place(item), delta, ...logprobs });
  }

  #endText(block: Block): string {
    const item = this.#take(block);
    if (item === undefined) return '';
    const settled = this.#settleText('completed');
    this.#endedText = item;
    return settled;
  }

  #settleText(status: 'completed' | 'incomplete'): string {
    const item = this.#endedText;
    this.#endedText = undefined;
    return item === undefined ? '' : this.#close(item, status);
  }

  /** Providers that do not stream arguments announce a call only by this. */
  #endCall({ toolCallId: id, toolName, input }: Call): string {
    const block: Block = { kind: 'call', id, toolName };
    const started = this.#open.has(keyOf(block)) ? '' : this.#start(block);
    const unsaid = this.#open.get(keyOf(block))?.text === '' ? this.#grow(block, input) : '';
    const item = this.#take(block);
    if (item === undefined) throw new TypeError('a call was started but is not open');
    item.text = input;
    return started + unsaid + this.#close(item, 'completed');
  }

  #finish(reason: LanguageModelV4FinishReason, usage: LanguageModelV4Usage): string {
    const end = ending(reason);
    const lastStatus = end.status === 'incomplete' ? 'incomplete' : 'completed';
    const settled = this.#settleText(lastStatus);
    const cut = [...this.#open.values()].map((item) => this.#close(item, 'incomplete')).join('');
    this.#open.clear();
    const completedAt = this.#options.now();
    const response = encodeResource(this.#envelope, { ...end, output: this.#output, completedAt, usage });
    return settled + cut + this.#answer(response);
  }

  #answer(response: ResponseResource): string {
    try {
      return this.#event(`response.${response.status}`, { response: this.#options.onAnswer(response) });
    } catch (error) {
      return this.#failed(outwardError(error));
    }
  }

  #take(block: Block): OpenItem | undefined {
    const item = this.#open.get(keyOf(block));
    this.#open.delete(keyOf(block));
    return item;
  }

  /** What comes between an item's own first event and its first delta. */
  #begun(item: OpenItem): string {
    const event = EVENTS[item.kind].begun;
    return event === undefined ? '' : this.#event(event, { ...place(item), part: partOf(item, '') });
  }

  #close(item: OpenItem, status: 'completed' | 'incomplete'): string {
    const whole = this.#itemOf(item, status);
    this.#output[item.index] = whole;
    const { done, ended } = EVENTS[item.kind];
    const text = item.kind === 'call' ? { arguments: item.text } : { text: item.text };
    return (
      this.#event(done, { ...place(item), ...text, ...(item.kind === 'text' ? NO_LOGPROBS : {}) }) +
      (ended === undefined ? '' : this.#event(ended, { ...place(item), part: partOf(item, item.text) })) +
      this.#event('response.output_item.done', { output_index: item.index, item: whole })
    );
  }

  #itemOf({ kind, index, id, call, text }: OpenItem, status: MessageItem['status']): Item {
    if (call !== undefined) {
      return { type: 'function_call', id, status, ...call, arguments: text } satisfies FunctionCallItem;
    }
    if (kind === 'reasoning') {
      return text === '' ? { type: 'reasoning', id, summary: [] } : reasoningItem(this.#envelope, index, text);
    }
    return { type: 'message', id, status, role: 'assistant', content: text === '' ? [] : [outputText(text)] };
  }

  #event(type: string, fields: object): string {
    return encodeNamedEvent(type, { type, sequence_number: this.#sequenceNumber++, ...fields });
  }
}

const ITEM_TYPES = { text: 'message', reasoning: 'reasoning', call: 'function_call' } as const;

const EVENTS: Readonly<Record<Block['kind'], KindEvents>> = {
  text: {
    begun: 'response.content_part.added',
    delta: 'response.output_text.delta',
    done: 'response.output_text.done',
    ended: 'response.content_part.done',
  },
  reasoning: {
    begun: 'response.reasoning_summary_part.added',
    delta: 'response.reasoning_summary_text.delta',
    done: 'response.reasoning_summary_text.done',
    ended: 'response.reasoning_summary_part.done',
  },
  call: { delta: 'response.function_call_arguments.delta', done: 'response.function_call_arguments.done' },
};

interface KindEvents {
  readonly begun?: string;
  readonly delta: string;
  readonly done: string;
  readonly ended?: string;
}

/** OpenAI's client wants the list, though there is never anything in it. */
const NO_LOGPROBS = { logprobs: [] };

/** Where in the response an event belongs. */
function place({ kind, index, id }: OpenItem): object {
  const part = { text: { content_index: 0 }, reasoning: { summary_index: 0 }, call: {} };
  return { item_id: id, output_index: index, ...part[kind] };
}

function partOf({ kind }: OpenItem, text: string): object {
  return kind === 'reasoning' ? { type: 'summary_text', text } : outputText(text);
}
