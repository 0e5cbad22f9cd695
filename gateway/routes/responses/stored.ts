/** `/v1/responses/{id}`: stored responses can be fetched and deleted for a day, by the caller that they were made for. */
import * as z from 'zod';
import type { ResponseStore, StoredResponse } from '../../../core/responses/response-store.ts';
import { inTurns } from '../../../core/steps.ts';
import { NO_BODY_BYTES } from '../../bounds.ts';
import { ownerOf, type Caller } from '../../caller.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import type { Services } from '../../route.ts';
import { DONE_EVENT, eventStream } from '../../wire/event-stream.ts';
import { openResponses } from '../../wire/responses/dialect.ts';
import { inferenceRoute } from '../route-classes.ts';
import { parseKeptItems } from '../../wire/responses/input.ts';
import type { Item } from '../../wire/responses/items.ts';
import { replayEvents, stepsSchema, storedResponseSchema, type StoredAnswer } from '../../wire/responses/steps.ts';
import { itemsOfAll } from './earlier.ts';

type Needs = Pick<Services, 'responses' | 'backgroundResponses'>;

export const getResponse = inferenceRoute({
  dialect: openResponses,
  method: 'GET',
  path: '/responses/:id',
  summary: 'A stored response.',
  handle({ caller, params, query }, { responses, backgroundResponses }: Needs) {
    const { stream, starting_after: last } = parseBody(getQuerySchema, Object.fromEntries(query));
    const stored = findResponse(responses, caller, params['id']);
    const running = backgroundResponses.find(ownerOf(caller), stored.id);
    if (stream) {
      const events = running?.events(last + 1) ?? replayed(stored, last + 1);
      return { headers: eventStream.headers, body: events };
    }
    return {
      body: running === undefined ? answerOf(stored) : { ...answerOf(stored), ...UNENDED, status: running.status },
    };
  },
});

const getQuerySchema = z.object({
  stream: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true'),
  /** The number of the last event that the client has. */
  starting_after: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).default(-1),
});

/** Of a response that is still being made. */
const UNENDED = { error: null, completed_at: null };

/** The whole stream again, of a response that has ended. */
async function* replayed(stored: StoredResponse, from: number): AsyncGenerator<string> {
  const steps = stored.steps === undefined ? undefined : stepsSchema.parse(stored.steps);
  let number = 0;
  for (const event of replayEvents(answerOf(stored), steps)) if (number++ >= from) yield event;
  yield DONE_EVENT;
}

/** One that nobody is making any more, and that never ended, was cut off by the end of the process that made it. */
function answerOf({ body, isUnfinished }: StoredResponse): StoredAnswer {
  const answer = storedResponseSchema.parse(body);
  if (isUnfinished !== true) return answer;
  return { ...answer, status: 'failed', error: INTERRUPTED };
}

const INTERRUPTED = { code: 'server_error', message: 'The service ended before the answer was complete. Ask again.' };

export const cancelResponse = inferenceRoute({
  dialect: openResponses,
  method: 'POST',
  path: '/responses/:id/cancel',
  maxBodyBytes: NO_BODY_BYTES,
  summary: 'End a response that is made in the background.',
  async handle({ caller, params }, { responses, backgroundResponses }: Needs) {
    const { id } = findResponse(responses, caller, params['id']);
    await backgroundResponses.find(ownerOf(caller), id)?.cancel();
    const answer = answerOf(findResponse(responses, caller, id));
    if (!answer.background) {
      throw new RequestError('bad_request', 'Only a response that was made with "background": true can be cancelled.');
    }
    return { body: answer };
  },
});

export const deleteResponse = inferenceRoute({
  dialect: openResponses,
  method: 'DELETE',
  path: '/responses/:id',
  summary: 'Forget a stored response.',
  async handle({ caller, params }, { responses, backgroundResponses }: Needs) {
    const id = params['id'] ?? '';
    await backgroundResponses.find(ownerOf(caller), id)?.cancel();
    if (!responses.delete(ownerOf(caller), id)) throw responseNotFound();
    return { body: { id, object: 'response', deleted: true } };
  },
});

const listQuerySchema = z.object({
  after: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  order: z.enum(['asc', 'desc']).default('desc'),
});

/** All that the model was given: what the response goes on from, and what its own request added. */
export const listInputItems = inferenceRoute({
  dialect: openResponses,
  method: 'GET',
  path: '/responses/:id/input_items',
  summary: 'What a stored response was asked.',
  async handle({ caller, params, query }, { responses }: Pick<Services, 'responses'>) {
    const { after, limit, order } = parseBody(listQuerySchema, Object.fromEntries(query));
    const response = findResponse(responses, caller, params['id']);
    const conversation = responses.conversation(ownerOf(caller), response.id) ?? [response];
    const before = await inTurns(itemsOfAll(conversation.slice(0, -1)));
    const items = [...before, ...parseKeptItems(response.input)];
    if (order === 'desc') items.reverse();
    const start = after === undefined ? 0 : indexOf(items, after) + 1;
    const data = items.slice(start, start + limit);
    return {
      body: {
        object: 'list',
        data,
        first_id: data[0]?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
        has_more: start + limit < items.length,
      },
    };
  },
});

/** @throws {RequestError} for a cursor that is none of this list */
function indexOf(items: readonly Item[], id: string): number {
  const index = items.findIndex((item) => item.id === id);
  if (index === -1)
    throw new RequestError('bad_request', 'after: no item of this list has this id', { param: 'after' });
  return index;
}

function findResponse(responses: ResponseStore, caller: Caller, id = ''): StoredResponse {
  const response = responses.find(ownerOf(caller), id);
  if (response === undefined) throw responseNotFound();
  return response;
}

function responseNotFound(): RequestError {
  return new RequestError(
    'not_found',
    'There is no response with this id. Responses are kept for 24 hours, and only for the caller that they were made for.',
  );
}
