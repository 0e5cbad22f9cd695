/** `/v1/responses/{id}`: stored responses can be fetched and deleted for a day, by the caller that they were made for. */
import * as z from 'zod';
import type { ResponseStore, StoredResponse } from '../../../core/responses/response-store.ts';
import { inTurns } from '../../../core/steps.ts';
import { ownerOf, type Caller } from '../../caller.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import type { Services } from '../../route.ts';
import { openResponses } from '../../wire/responses/dialect.ts';
import { inferenceRoute } from '../route-classes.ts';
import { parseKeptItems } from '../../wire/responses/input.ts';
import type { Item } from '../../wire/responses/items.ts';
import { itemsOfAll } from './earlier.ts';

export const getResponse = inferenceRoute({
  dialect: openResponses,
  method: 'GET',
  path: '/responses/:id',
  summary: 'A stored response.',
  handle({ caller, params, query }, { responses }: Pick<Services, 'responses'>) {
    if (query.get('stream') === 'true') {
      throw new RequestError('bad_request', 'stream: a stored response is given whole, not streamed again', {
        param: 'stream',
      });
    }
    return { body: z.looseObject({}).parse(findResponse(responses, caller, params['id']).body) };
  },
});

export const deleteResponse = inferenceRoute({
  dialect: openResponses,
  method: 'DELETE',
  path: '/responses/:id',
  summary: 'Forget a stored response.',
  handle({ caller, params }, { responses }: Pick<Services, 'responses'>) {
    const id = params['id'] ?? '';
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
