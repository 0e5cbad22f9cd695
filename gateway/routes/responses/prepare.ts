/**
 * What comes before an answer, however it is given: what was said before is looked up, the model found, and settled
 * whether there is room to store what comes of it.
 */
import type { Inference } from '../../../core/inference/inference.ts';
import type { LanguageModel, ModelCall } from '../../../core/inference/model-port.ts';
import type { ResponseStore, StoredResponse } from '../../../core/responses/response-store.ts';
import { inTurns } from '../../../core/steps.ts';
import { findDiskFault } from '../../../storage/disk-fault.ts';
import { isGuest, ownerOf, type Caller } from '../../caller.ts';
import type { Services } from '../../route.ts';
import { ignoredHeaders } from '../../wire/ignored.ts';
import { objectId } from '../../wire/object-id.ts';
import { responseId, type Item } from '../../wire/responses/items.ts';
import type { ResponsesBody } from '../../wire/responses/request.ts';
import type { ResponseEnvelope, ResponseResource } from '../../wire/responses/resource.ts';
import type { Step } from '../../wire/responses/steps.ts';
import { parseWithEarlier, type LocalResponse } from './earlier.ts';
import { fitPrompt } from './fit-prompt.ts';

export interface PreparedResponse {
  readonly envelope: ResponseEnvelope;
  readonly model: LanguageModel;
  readonly call: ModelCall;
  /** As it would be stored, were it not for its answer. */
  readonly stored: Omit<StoredResponse, 'body'>;
  /** Names what of the request has no effect. */
  readonly headers: Readonly<Record<string, string>>;
  /** Unix time in seconds. */
  readonly seconds: () => number;
  /** All that was said up to the answer. */
  readonly items: readonly Item[];
  readonly isStored: boolean;
  /** Stores the final response, unless it is not to be. @returns what its client is told */
  readonly keep: (response: ResponseResource, steps?: readonly Step[]) => ResponseResource;
}

interface RequestContext {
  readonly caller: Caller;
  readonly bodyBytes: number;
  readonly signal: AbortSignal;
  readonly local?: LocalResponse | undefined;
}

/** What of the services an answer takes. */
export interface ResponseNeeds extends Pick<Services, 'responses' | 'backgroundResponses' | 'storage' | 'now'> {
  readonly inference: Pick<Inference, 'languageModel' | 'countPromptTokens' | 'status'>;
}

/** @throws {RequestError} and {ServiceError} for what can't be answered */
export async function prepareResponse(
  asked: ResponsesBody,
  { caller, bodyBytes, signal, local }: RequestContext,
  services: ResponseNeeds,
): Promise<PreparedResponse> {
  const { inference, responses, now } = services;
  const owner = ownerOf(caller);
  const key = objectId('');
  const previousId = asked.previous_response_id ?? undefined;
  // What goes on from something that is not stored could not be read again.
  const isLocal = previousId !== undefined && previousId === local?.id;
  const isRefused = asked.store !== false && (isLocal || !hasRoom(responses, { caller, previousId, bodyBytes }));
  const sent = isRefused ? { ...asked, store: false } : asked;
  const request = await inTurns(parseWithEarlier(sent, { key, responses, owner, previousId, local }));
  const model = await inference.languageModel(request.model);
  const { call, dropped } =
    sent.truncation === 'auto'
      ? await fitPrompt(request, { inference, signal, modelId: model.modelId })
      : whole(request);
  const seconds = (): number => Math.floor(now() / 1000);
  const stored = { id: responseId(key), previousId, input: request.input };
  return {
    envelope: {
      key,
      inputItems: request.input.length,
      createdAt: seconds(),
      model: model.modelId,
      request: sent,
      tools: request.tools,
    },
    model,
    call: { ...call, abortSignal: signal },
    headers: ignoredHeaders([...request.ignored, ...(isRefused ? ['store'] : []), ...dropped]),
    seconds,
    stored,
    items: request.items(),
    isStored: request.store,
    keep(body, steps) {
      // A client that left never learned the id.
      if (!request.store || signal.aborted) return body;
      const write = (): boolean => save(responses, caller, { ...stored, body, steps });
      return trySave(write, services.storage) ? body : { ...body, store: false };
    },
  };
}

function whole({ call }: { readonly call: ModelCall }): {
  readonly call: ModelCall;
  readonly dropped: readonly string[];
} {
  return { call, dropped: [] };
}

interface RoomFor {
  readonly caller: Caller;
  readonly previousId: string | undefined;
  readonly bodyBytes: number;
}

function hasRoom(responses: ResponseStore, { caller, previousId, bodyBytes }: RoomFor): boolean {
  return (
    responses.hasRoomInConversation(ownerOf(caller), previousId, bodyBytes) &&
    (!isGuest(caller) || responses.hasRoomForGuests())
  );
}

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
