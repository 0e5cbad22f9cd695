/**
 * Open Responses over a WebSocket: `GET /v1/responses` opens it, and each `response.create` is a request of its own. The
 * connection knows the last response that was not to be stored, so that its client can go on from it.
 */
import type { LanguageModelV4Usage } from '@ai-sdk/provider';
import * as z from 'zod';
import type { ModelStreamPart } from '../../../core/inference/model-port.ts';
import { MAX_CONVERSATION_BYTES } from '../../../core/responses/response-store.ts';
import { inTurns } from '../../../core/steps.ts';
import { isGuest } from '../../caller.ts';
import { refusalError, RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import type { GatewayRequest, Reply, Route, Services } from '../../route.ts';
import { eventStream } from '../../wire/event-stream.ts';
import { openResponses } from '../../wire/responses/dialect.ts';
import { parseResponsesBody } from '../../wire/responses/request.ts';
import type { ResponseResource } from '../../wire/responses/resource.ts';
import { encodeResponseStream } from '../../wire/responses/stream.ts';
import { inferenceRoute } from '../route-classes.ts';
import { createResponse } from './create.ts';
import type { LocalResponse } from './earlier.ts';
import { prepareResponse, type PreparedResponse } from './prepare.ts';

export const openResponsesSocket = inferenceRoute({
  dialect: openResponses,
  method: 'GET',
  path: '/responses',
  summary: 'Opens a WebSocket: each `response.create` is answered by the events of its stream.',
  handle({ caller, headers, signal }: GatewayRequest): Reply {
    if (headers['upgrade'] === undefined) {
      const message = 'Method not allowed: POST a request here, or open a WebSocket.';
      throw new RequestError('method_not_allowed', message, { headers: { allow: 'POST' } });
    }
    if (caller.sealed) {
      const message = 'A WebSocket can\'t be opened inside the encrypted channel. POST with "stream": true instead.';
      throw new RequestError('not_implemented', message);
    }
    // A connection lasts, and a guest's place is for one request.
    if (isGuest(caller)) throw refusalError('cross_site');
    return { status: 101, body: '', messages: new Session().route, cut: signal };
  },
});

const createEventSchema = z.looseObject({
  type: z.literal('response.create', { error: 'expected "response.create"' }),
  /** False prepares the model for what is to come, and asks for no answer. */
  generate: z.boolean().nullish(),
  background: z.literal(false, { error: 'an answer over a WebSocket is not made in the background' }).nullish(),
  stream_id: z.null({ error: 'responses are made one after the other here; open another connection' }).optional(),
});

/** What one connection knows. */
class Session {
  #last: LocalResponse | undefined;

  readonly route: Route = {
    ...createResponse,
    body: createEventSchema,
    handle: (request, services) => this.#create(request, services),
  };

  async #create(request: GatewayRequest, services: Services): Promise<Reply> {
    const local = this.#last;
    // Whatever goes wrong from here on, it can't be gone on from a second time.
    let previousId: string | null | undefined;
    try {
      const json = request.json();
      const event = parseBody(createEventSchema, json);
      const asked = await inTurns(parseResponsesBody(json));
      previousId = asked.previous_response_id;
      const prepared = await prepareResponse(asked, { ...request, local }, services);
      const parts = event.generate === false ? await warmUp(prepared, services) : await answerTo(prepared);
      return { headers: { ...eventStream.headers, ...prepared.headers }, body: this.#events(prepared, parts) };
    } catch (error) {
      this.#evict(previousId);
      throw error;
    }
  }

  #events(prepared: PreparedResponse, parts: AsyncIterable<ModelStreamPart>): AsyncIterable<string> {
    const { envelope, seconds, keep, isStored } = prepared;
    return encodeResponseStream(envelope, parts, {
      now: seconds,
      onAnswer: (response, steps) => {
        if (!isStored) this.#last = localResponse(prepared, response);
        return keep(response, steps);
      },
      onFailure: () => this.#evict(envelope.request.previous_response_id),
    });
  }

  #evict(id: string | null | undefined): void {
    if (this.#last?.id === id) this.#last = undefined;
  }
}

/** @returns undefined for one that is longer than what would be stored */
function localResponse({ items }: PreparedResponse, { id, output }: ResponseResource): LocalResponse | undefined {
  const conversation = [...items, ...output];
  return JSON.stringify(conversation).length <= MAX_CONVERSATION_BYTES ? { id, conversation } : undefined;
}

async function answerTo({ model, call }: PreparedResponse): Promise<AsyncIterable<ModelStreamPart>> {
  return (await model.doStream(call)).stream;
}

/** The model is loaded, and has found that the prompt fits. */
async function warmUp(
  { model, call }: PreparedResponse,
  { inference }: Pick<Services, 'inference'>,
): Promise<AsyncIterable<ModelStreamPart>> {
  const tokens = await inference.countPromptTokens(model.modelId, call);
  return nothingSaid(tokens);
}

async function* nothingSaid(tokens: number): AsyncGenerator<ModelStreamPart> {
  const usage: LanguageModelV4Usage = {
    inputTokens: { total: tokens, noCache: tokens, cacheRead: 0, cacheWrite: undefined },
    outputTokens: { total: 0, text: 0, reasoning: 0 },
  };
  yield { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage };
}
