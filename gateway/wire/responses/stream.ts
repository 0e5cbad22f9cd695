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
import { DONE_EVENT } from '../event-stream.ts';
import { CHAT_FIELDS, encodeOpenAiError } from '../openai/error.ts';
import { addedEvents, deltaEvent, doneEvents, type EventFields, type ItemKind } from './item-events.ts';
import { outputText, type FunctionCallItem, type Item, type MessageItem } from './items.ts';
import {
  calledAs,
  encodeResource,
  ending,
  firstProgress,
  outputId,
  reasoningItem,
  type ResponseEnvelope,
  type ResponseResource,
} from './resource.ts';
import { ADDED, beginEvents, DONE, encodeNumbered, endEvent, STARTED, type Step } from './steps.ts';

interface StreamOptions {
  /** Unix time in seconds. */
  readonly now: () => number;
  /**
   * Called with the final response before the client hears of it; not when it failed.
   * @param steps by which it came
   * @returns what the client hears
   */
  readonly onAnswer: (response: ResponseResource, steps: readonly Step[]) => ResponseResource;
  /** The same for one that failed or was cancelled. */
  readonly onFailure?: (response: ResponseResource, steps: readonly Step[]) => void;
  /** Whether it was ended on purpose: that is no failure. */
  readonly isCancelled?: () => boolean;
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
  readonly kind: ItemKind;
  readonly id: string;
  readonly toolName?: string;
}

/** Two blocks of different kinds may have one id. */
function keyOf({ kind, id }: Block): string {
  return `${kind} ${id}`;
}

/** An item that the model is in the middle of. */
interface OpenItem {
  readonly kind: ItemKind;
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
  #hasBegun = false;
  readonly #steps: Step[] = [];

  constructor(envelope: ResponseEnvelope, options: StreamOptions) {
    this.#envelope = envelope;
    this.#options = options;
  }

  begin(): string {
    return this.#events(beginEvents(encodeResource(this.#envelope, firstProgress(this.#envelope))));
  }

  encode(part: ModelStreamPart): string {
    return this.#wakeUp() + this.#encode(part);
  }

  /** What waited for its turn has it now. */
  #wakeUp(): string {
    if (this.#hasBegun) return '';
    this.#hasBegun = true;
    if (firstProgress(this.#envelope).status !== 'queued') return '';
    this.#steps.push([0, STARTED]);
    const response = encodeResource(this.#envelope, { status: 'in_progress', output: [] });
    return this.#events([{ type: 'response.in_progress', response }]);
  }

  #encode(part: ModelStreamPart): string {
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
      ...(this.#options.isCancelled?.() === true
        ? { status: 'cancelled' }
        : { status: 'failed', error: { code, message } }),
      output: this.#output,
    });
    this.#options.onFailure?.(response, this.#steps);
    return ended + this.#events([endEvent(response)]);
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
    this.#steps.push([index, ADDED]);
    this.#output.push(empty);
    return settled + this.#events(addedEvents(item, empty));
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
    this.#steps.push([item.index, delta.length]);
    return started + this.#events([deltaEvent(item, delta)]);
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
      return this.#events([endEvent(this.#options.onAnswer(response, this.#steps))]);
    } catch (error) {
      return this.#failed(outwardError(error));
    }
  }

  #take(block: Block): OpenItem | undefined {
    const item = this.#open.get(keyOf(block));
    this.#open.delete(keyOf(block));
    return item;
  }

  #close(item: OpenItem, status: 'completed' | 'incomplete'): string {
    const whole = this.#itemOf(item, status);
    this.#output[item.index] = whole;
    this.#steps.push([item.index, DONE]);
    return this.#events(doneEvents(item, whole));
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

  #events(events: readonly EventFields[]): string {
    return events.map(({ type, ...fields }) => encodeNumbered(type, this.#sequenceNumber++, fields)).join('');
  }
}

const ITEM_TYPES = { text: 'message', reasoning: 'reasoning', call: 'function_call' } as const;
