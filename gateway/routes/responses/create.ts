/**
 * `POST /v1/responses`: Open Responses. Tools that the model calls are run by the client, never here. What comes of it is
 * kept for a day, for the same caller alone, unless the client asks for it to be forgotten.
 */
import type { ModelStreamPart } from '../../../core/inference/model-port.ts';
import { inTurns } from '../../../core/steps.ts';
import { isGuest, ownerOf } from '../../caller.ts';
import { RequestError } from '../../errors.ts';
import type { Detached, GatewayRequest, Reply, Services } from '../../route.ts';
import { eventStream } from '../../wire/event-stream.ts';
import { openResponses } from '../../wire/responses/dialect.ts';
import { parseResponsesBody, responsesRequestSchema, type ResponsesBody } from '../../wire/responses/request.ts';
import { encodeResource, encodeResponse, firstProgress } from '../../wire/responses/resource.ts';
import { encodeResponseStream } from '../../wire/responses/stream.ts';
import { chatRoute } from '../inference/chat-route.ts';
import { prepareResponse, type PreparedResponse, type ResponseNeeds } from './prepare.ts';

export const createResponse = chatRoute({
  dialect: openResponses,
  path: '/responses',
  summary: 'Open Responses.',
  body: responsesRequestSchema,
  async read(request, services: ResponseNeeds) {
    const asked = await inTurns(parseResponsesBody(request.json()));
    if (asked.background === true) return answerInBackground(asked, request, services);
    const { envelope, model, call, headers, seconds, keep } = await prepareResponse(asked, request, services);
    return {
      model,
      call,
      headers,
      stream: asked.stream ?? false,
      answer: () => ({
        whole: (answer) => keep(encodeResponse(envelope, answer, { completedAt: seconds() })),
        stream: (parts) => encodeResponseStream(envelope, parts, { now: seconds, onAnswer: keep }),
      }),
    };
  },
});

/** @throws {RequestError} for what can't be kept, since its client is to come back to it */
async function answerInBackground(
  asked: ResponsesBody,
  request: GatewayRequest,
  services: ResponseNeeds,
): Promise<Reply> {
  const { caller } = request;
  const owner = ownerOf(caller);
  if (isGuest(caller))
    throw notInBackground("web pages that aren't listed in server.allowedOrigins can't ask for this");
  if (asked.store === false) throw notInBackground('what is made in the background has to be stored');
  services.backgroundResponses.assertRoom(owner);
  const prepared = await prepareResponse(asked, request, services);
  if (!prepared.isStored) throw notInBackground('the conversation is too long to be stored');
  // Others may have begun some meanwhile.
  services.backgroundResponses.assertRoom(owner);
  const body = encodeResource(prepared.envelope, firstProgress(prepared.envelope));
  services.responses.save(owner, { ...prepared.stored, body, isUnfinished: true });
  const made = makeInBackground(prepared, { owner, detached: request.detach(), services });
  const running = services.backgroundResponses.begin({ owner, id: prepared.stored.id, ...made });
  if (asked.stream !== true) return { headers: prepared.headers, body };
  return { headers: { ...eventStream.headers, ...prepared.headers }, body: running.events(0) };
}

function notInBackground(why: string): RequestError {
  return new RequestError('bad_request', `background: ${why}`, { param: 'background' });
}

interface BackgroundContext {
  readonly owner: string;
  readonly detached: Detached;
  readonly services: Pick<Services, 'responses' | 'storage'>;
}

function makeInBackground(
  { envelope, call, seconds, stored }: PreparedResponse,
  { owner, detached, services }: BackgroundContext,
): { readonly events: AsyncIterable<string>; readonly cancel: () => void } {
  const cancelling = new AbortController();
  const abortSignal = AbortSignal.any([cancelling.signal, detached.signal]);
  const finish = (body: object, steps: unknown): void => {
    detached.end();
    // What can't be stored is as if this process had ended before: it says so itself when it is asked for.
    try {
      services.responses.finish(owner, { id: stored.id, body, steps });
    } catch (error) {
      services.storage.note(error);
    }
  };
  const events = encodeResponseStream(envelope, partsOf(envelope.model, { ...call, abortSignal }, detached), {
    now: seconds,
    onAnswer(response, steps) {
      finish(response, steps);
      return response;
    },
    onFailure: finish,
    isCancelled: () => cancelling.signal.aborted,
  });
  return { events, cancel: () => cancelling.abort() };
}

/** What keeps it from beginning is told in the stream as well: its client has its answer by then. */
async function* partsOf(
  id: string,
  call: PreparedResponse['call'],
  { services: { inference } }: Detached,
): AsyncGenerator<ModelStreamPart> {
  const model = await inference.languageModel(id);
  yield* (await model.doStream(call)).stream;
}
