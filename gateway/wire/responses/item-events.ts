/**
 * Open Responses, the events of one item of an answer, from its first to its last. Pure. Whoever makes them numbers them.
 */
import { outputText } from './items.ts';

export type ItemKind = 'text' | 'reasoning' | 'call';

/** An item as far as its events need to know it. */
export interface EventItem {
  readonly kind: ItemKind;
  /** In the output. */
  readonly index: number;
  readonly id: string;
  /** All that it says. */
  readonly text: string;
}

export interface EventFields {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** @param item as it is before there is anything in it */
export function addedEvents(at: EventItem, item: object): readonly EventFields[] {
  const added = { type: 'response.output_item.added', output_index: at.index, item };
  const { begun } = EVENTS[at.kind];
  return begun === undefined ? [added] : [added, { type: begun, ...place(at), part: partOf(at, '') }];
}

export function deltaEvent(at: EventItem, delta: string): EventFields {
  return { type: EVENTS[at.kind].delta, ...place(at), delta, ...(at.kind === 'text' ? NO_LOGPROBS : {}) };
}

/** @param item as it is in the end */
export function doneEvents(at: EventItem, item: object): readonly EventFields[] {
  const { done, ended } = EVENTS[at.kind];
  const text = at.kind === 'call' ? { arguments: at.text } : { text: at.text };
  return [
    { type: done, ...place(at), ...text, ...(at.kind === 'text' ? NO_LOGPROBS : {}) },
    ...(ended === undefined ? [] : [{ type: ended, ...place(at), part: partOf(at, at.text) }]),
    { type: 'response.output_item.done', output_index: at.index, item },
  ];
}

const EVENTS: Readonly<Record<ItemKind, KindEvents>> = {
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
function place({ kind, index, id }: EventItem): object {
  const part = { text: { content_index: 0 }, reasoning: { summary_index: 0 }, call: {} };
  return { item_id: id, output_index: index, ...part[kind] };
}

function partOf({ kind }: EventItem, text: string): object {
  return kind === 'reasoning' ? { type: 'summary_text', text } : outputText(text);
}
