/**
 * Open Responses, the steps by which an answer came: as much as it takes to stream it once more, with the very events and
 * numbers that it had the first time, from the response as it is in the end. Pure.
 */
import * as z from 'zod';
import { encodeNamedEvent } from '../event-stream.ts';
import { addedEvents, deltaEvent, doneEvents, type EventFields, type EventItem } from './item-events.ts';

/** The index of an item in the output, and of a delta the characters; or one of these. */
export type Step = readonly [index: number, what: number];
export const ADDED = 0;
export const DONE = -1;
/** What waited has its turn; of no item. */
export const STARTED = -2;

export const stepsSchema = z.array(z.tuple([z.int().nonnegative(), z.int().min(STARTED)]));

/** How a response begins. @param response as it is then */
export function beginEvents(response: ResponseState): readonly EventFields[] {
  const created = { type: 'response.created', response };
  return [created, { type: response.status === 'queued' ? 'response.queued' : 'response.in_progress', response }];
}

/** How it ends. The standard has no event for what was cancelled: it is not whole, and says why. */
export function endEvent(response: ResponseState): EventFields {
  return { type: `response.${response.status === 'cancelled' ? 'incomplete' : response.status}`, response };
}

export function encodeNumbered(type: string, sequenceNumber: number, fields: object): string {
  return encodeNamedEvent(type, { type, sequence_number: sequenceNumber, ...fields });
}

interface ResponseState {
  readonly status: string;
}

/** Whatever else a stored response has is told as it is. */
export const storedResponseSchema = z.looseObject({
  status: z.string(),
  background: z.boolean().default(false),
  output: z.array(
    z.looseObject({
      type: z.string(),
      id: z.string(),
      content: z.array(z.looseObject({ text: z.string().default('') })).optional(),
      summary: z.array(z.looseObject({ text: z.string().default('') })).optional(),
      arguments: z.string().optional(),
    }),
  ),
});
export type StoredAnswer = z.output<typeof storedResponseSchema>;
type StoredItem = StoredAnswer['output'][number];

/** All events of a response that has ended, each as it goes over the wire. @param steps undefined for one that was given whole */
export function* replayEvents(
  response: StoredAnswer,
  steps: readonly Step[] = wholeSteps(response),
): Generator<string> {
  let number = 0;
  for (const { type, ...fields } of eventsOf(response, steps)) yield encodeNumbered(type, number++, fields);
}

function* eventsOf(response: StoredAnswer, steps: readonly Step[]): Generator<EventFields> {
  const before = { ...response, ...UNFINISHED };
  yield* beginEvents({ ...before, status: response.background ? 'queued' : 'in_progress' });
  const said = new Map<number, number>();
  for (const [index, what] of steps) {
    if (what === STARTED) yield { type: 'response.in_progress', response: { ...before, status: 'in_progress' } };
    const item = what === STARTED ? undefined : response.output[index];
    if (item === undefined) continue;
    const at = eventItem(item, index);
    const from = said.get(index) ?? 0;
    if (what > 0) said.set(index, from + what);
    yield* what === ADDED
      ? addedEvents(at, emptied(item))
      : what === DONE
        ? doneEvents(at, item)
        : [deltaEvent(at, at.text.slice(from, from + what))];
  }
  yield endEvent(response);
}

/** What a response is not told to have before its end. */
const UNFINISHED = { completed_at: null, error: null, incomplete_details: null, output: [], usage: null };

function wholeSteps({ output }: StoredAnswer): readonly Step[] {
  return output.flatMap((item, index): Step[] => {
    const { length } = eventItem(item, index).text;
    return [[index, ADDED], ...(length > 0 ? [[index, length] as const] : []), [index, DONE]];
  });
}

function eventItem(item: StoredItem, index: number): EventItem {
  const { type, id } = item;
  if (type === 'function_call') return { kind: 'call', index, id, text: item.arguments ?? '' };
  const [kind, parts] =
    type === 'reasoning' ? (['reasoning', item.summary] as const) : (['text', item.content] as const);
  return { kind, index, id, text: parts?.[0]?.text ?? '' };
}

/** An item as it is told when there is nothing in it yet. */
function emptied(item: StoredItem): object {
  const { content: _, encrypted_content: __, ...rest } = item;
  if (item.type === 'function_call') return { ...rest, status: 'in_progress', arguments: '' };
  if (item.type === 'reasoning') return { ...rest, summary: [] };
  return { ...rest, status: 'in_progress', content: [] };
}
