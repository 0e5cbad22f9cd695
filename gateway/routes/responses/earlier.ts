/** What earlier responses have to do with a request: the conversation that it goes on with, and items that it names. */
import {
  MAX_CONVERSATION_BYTES,
  type ResponseStore,
  type StoredResponse,
} from '../../../core/responses/response-store.ts';
import * as z from 'zod';
import type { Steps } from '../../../core/steps.ts';
import { RequestError } from '../../errors.ts';
import { parseKeptItems } from '../../wire/responses/input.ts';
import { responseIdOfItem, type Item } from '../../wire/responses/items.ts';
import {
  parseResponsesRequest,
  type Earlier,
  type ResponsesBody,
  type ResponsesRequest,
} from '../../wire/responses/request.ts';

export interface EarlierContext {
  readonly responses: ResponseStore;
  readonly owner: string;
  readonly previousId: string | undefined;
  /** What else can be gone on from. */
  readonly local?: LocalResponse | undefined;
}

/** A response that is not stored, but for as long as its connection lasts. */
export interface LocalResponse {
  readonly id: string;
  /** All that was said, its answer included. */
  readonly conversation: readonly Item[];
}

/** @param key names the new items */
export function* parseWithEarlier(
  body: ResponsesBody,
  { key, ...context }: EarlierContext & { readonly key: string },
): Steps<ResponsesRequest> {
  return yield* parseResponsesRequest(body, { key, ...(yield* earlier(context)) });
}

export function* earlier(context: EarlierContext): Steps<Earlier> {
  const { responses, owner } = context;
  const conversation = yield* conversationOf(context);
  const looked = new Map<string, ReadonlyMap<string, Item>>();
  let bytes = 0;
  const itemsOfResponse = (id: string): ReadonlyMap<string, Item> => {
    bytes += responses.bytesOf(owner, id);
    if (bytes > MAX_CONVERSATION_BYTES) throw tooMuchReferredTo();
    const response = responses.find(owner, id);
    return new Map(response === undefined ? [] : itemsOf(response).map((item) => [item.id, item]));
  };
  return {
    conversation,
    findItem(id) {
      const response = responseIdOfItem(id);
      if (response === undefined) return undefined;
      const items = looked.get(response) ?? itemsOfResponse(response);
      looked.set(response, items);
      return items.get(id);
    },
  };
}

function* conversationOf({ responses, owner, previousId, local }: EarlierContext): Steps<readonly Item[]> {
  if (previousId === undefined) return [];
  if (previousId === local?.id) return local.conversation;
  const conversation = responses.conversation(owner, previousId);
  if (conversation === undefined) throw previousNotFound();
  if (conversation.some(({ isUnfinished }) => isUnfinished === true)) throw previousUnfinished();
  return yield* itemsOfAll(conversation);
}

/** All of a response is read for one item of it. */
function tooMuchReferredTo(): RequestError {
  const most = `${MAX_CONVERSATION_BYTES / 1024 / 1024} MiB`;
  const message = `input: the responses that these items are part of are longer than ${most}; send the items in full`;
  return new RequestError('bad_request', message, { param: 'input' });
}

function previousNotFound(): RequestError {
  return new RequestError(
    'previous_response_not_found',
    'previous_response_id: there is no response with this id, or its conversation is no longer there in full. Responses are kept for 24 hours, unless they were made with "store": false.',
    { param: 'previous_response_id' },
  );
}

function previousUnfinished(): RequestError {
  const message =
    'previous_response_id: this response has not ended. Go on from it when it has, or from the one before it.';
  return new RequestError('bad_request', message, { param: 'previous_response_id' });
}

export function* itemsOfAll(responses: readonly StoredResponse[]): Steps<Item[]> {
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
