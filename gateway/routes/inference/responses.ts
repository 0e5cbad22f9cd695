/**
 * `/v1/responses`: Open Responses. Tools that the model calls are run by the client, never here. Responses that a
 * client did not ask to be forgotten can be fetched, deleted and gone on from for a day, by the same caller alone.
 */
import * as z from 'zod';
import {
  MAX_CONVERSATION_BYTES,
  type ResponseStore,
  type StoredResponse,
} from '../../../core/responses/response-store.ts';
import { inTurns, type Steps } from '../../../core/steps.ts';
import { findDiskFault } from '../../../storage/disk-fault.ts';
import { NO_BODY_BYTES, PUBLIC_BODY_BYTES } from '../../bounds.ts';
import { isGuest, ownerOf, type Caller } from '../../caller.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import type { Route, Services } from '../../route.ts';
import { eventStream } from '../../wire/event-stream.ts';
import { ignoredHeaders } from '../../wire/ignored.ts';
import { objectId } from '../../wire/object-id.ts';
import { parseKeptItems } from '../../wire/responses/input.ts';
import { responseIdOfItem, type Item } from '../../wire/responses/items.ts';
import {
  parseResponsesBody,
  parseResponsesRequest,
  type Earlier,
  type ResponsesBody,
  type ResponsesRequest,
  responsesRequestSchema,
} from '../../wire/responses/request.ts';
import { encodeResponse, type ResponseEnvelope, type ResponseResource } from '../../wire/responses/resource.ts';
import { encodeResponseStream } from '../../wire/responses/stream.ts';

export const createResponse: Route = {
  method: 'POST',
  path: '/responses',
  access: 'inference',
  maxBodyBytes: PUBLIC_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'Open Responses.',
  body: responsesRequestSchema,
  async handle({ json, bodyBytes, caller, signal }, { inference, responses, storage, now }) {
    const owner = ownerOf(caller);
    const key = objectId('');
    const asked = await inTurns(parseResponsesBody(json()));
    const previousId = asked.previous_response_id ?? undefined;
    const hasRoom =
      responses.hasRoomInConversation(owner, previousId, bodyBytes) &&
      (!isGuest(caller) || responses.hasRoomForGuests());
    const isRefused = asked.store !== false && !hasRoom;
    const sent = isRefused ? { ...asked, store: false } : asked;
    const request = await inTurns(parseWithEarlier(sent, { key, responses, owner, previousId }));
    const model = await inference.languageModel(request.model);
    const call = { ...request.call, abortSignal: signal };
    const seconds = () => Math.floor(now() / 1000);
    const envelope: ResponseEnvelope = {
      key,
      inputItems: request.input.length,
      createdAt: seconds(),
      model: model.modelId,
      request: sent,
      tools: request.tools,
    };
    const onAnswer = (response: ResponseResource): ResponseResource => {
      // A client that left never learned the id.
      if (!request.store || signal.aborted) return response;
      const stored = { id: response.id, previousId, input: request.input, body: response };
      return trySave(() => save(responses, caller, stored), storage) ? response : { ...response, store: false };
    };
    const headers = ignoredHeaders([...request.ignored, ...(isRefused ? ['store'] : [])]);
    if (!request.stream) {
      const response = encodeResponse(envelope, await model.doGenerate(call), { completedAt: seconds() });
      return { headers, body: onAnswer(response) };
    }
    const { stream } = await model.doStream(call);
    const events = encodeResponseStream(envelope, stream, { now: seconds, onAnswer });
    return { headers: { ...eventStream.headers, ...headers }, body: events };
  },
};

/** @returns false where there was no room */
function save(responses: ResponseStore, caller: Caller, response: StoredResponse): boolean {
  if (isGuest(caller)) return responses.saveForGuest(ownerOf(caller), response);
  responses.save(ownerOf(caller), response);
  return true;
}

/** A disk that takes nothing costs nobody an answer: it says itself that it was not stored. */
function trySave(write: () => boolean, storage: Services['storage']): boolean {
  try {
    return write();
  } catch (error) {
    if (findDiskFault(error) === undefined) throw error;
    storage.note(error);
    return false;
  }
}

export const getResponse: Route = {
  method: 'GET',
  path: '/responses/:id',
  access: 'inference',
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'A stored response.',
  handle({ caller, params, query }, { responses }) {
    if (query.get('stream') === 'true') {
      throw new RequestError('bad_request', 'stream: a stored response is given whole, not streamed again', {
        param: 'stream',
      });
    }
    return { body: z.looseObject({}).parse(findResponse(responses, caller, params['id']).body) };
  },
};

export const deleteResponse: Route = {
  method: 'DELETE',
  path: '/responses/:id',
  access: 'inference',
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'Forget a stored response.',
  handle({ caller, params }, { responses }) {
    const id = params['id'] ?? '';
    if (!responses.delete(ownerOf(caller), id)) throw responseNotFound();
    return { body: { id, object: 'response', deleted: true } };
  },
};

const listQuerySchema = z.object({
  after: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  order: z.enum(['asc', 'desc']).default('desc'),
});

/** All that the model was given: what the response goes on from, and what its own request added. */
export const listInputItems: Route = {
  method: 'GET',
  path: '/responses/:id/input_items',
  access: 'inference',
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'What a stored response was asked.',
  async handle({ caller, params, query }, { responses }) {
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
};

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

interface Asked {
  readonly responses: ResponseStore;
  readonly owner: string;
  readonly previousId: string | undefined;
}

/** @param asked.key names the new items */
function* parseWithEarlier(
  body: ResponsesBody,
  { key, ...asked }: Asked & { readonly key: string },
): Steps<ResponsesRequest> {
  return yield* parseResponsesRequest(body, { key, ...(yield* earlier(asked)) });
}

function* earlier({ responses, owner, previousId }: Asked): Steps<Earlier> {
  const conversation = previousId === undefined ? [] : responses.conversation(owner, previousId);
  if (conversation === undefined) throw previousNotFound();
  const looked = new Map<string, ReadonlyMap<string, Item>>();
  let bytes = 0;
  const itemsOfResponse = (id: string): ReadonlyMap<string, Item> => {
    bytes += responses.bytesOf(owner, id);
    if (bytes > MAX_CONVERSATION_BYTES) throw tooMuchReferredTo();
    const response = responses.find(owner, id);
    return new Map(response === undefined ? [] : itemsOf(response).map((item) => [item.id, item]));
  };
  return {
    conversation: yield* itemsOfAll(conversation),
    findItem(id) {
      const response = responseIdOfItem(id);
      if (response === undefined) return undefined;
      const items = looked.get(response) ?? itemsOfResponse(response);
      looked.set(response, items);
      return items.get(id);
    },
  };
}

/** All of a response is read for one item of it. */
function tooMuchReferredTo(): RequestError {
  const most = `${MAX_CONVERSATION_BYTES / 1024 / 1024} MiB`;
  const message = `input: the responses that these items are part of are longer than ${most}; send the items in full`;
  return new RequestError('bad_request', message, { param: 'input' });
}

function previousNotFound(): RequestError {
  return new RequestError(
    'not_found',
    'previous_response_id: there is no response with this id, or its conversation is no longer there in full. Responses are kept for 24 hours, unless they were made with "store": false.',
    { param: 'previous_response_id' },
  );
}

function* itemsOfAll(responses: readonly StoredResponse[]): Steps<Item[]> {
  const items: Item[] = [];
  for (const response of responses) {
    items.push(...itemsOf(response));
    yield;
  }
  return items;
}

const storedBodySchema = z.looseObject({ output: z.unknown() });

/** What a response added to its conversation: what was said to the model, and what it answered. */
function itemsOf({ input, body }: StoredResponse): Item[] {
  return [...parseKeptItems(input), ...parseKeptItems(storedBodySchema.parse(body).output)];
}
