/** `POST /v1/messages` and `POST /v1/messages/count_tokens`. Tools that the model calls are run by the client. */
import { inTurns } from '../../../core/steps.ts';
import { PUBLIC_BODY_BYTES } from '../../bounds.ts';
import type { Route } from '../../route.ts';
import {
  parseCountTokensRequest,
  parseMessagesRequest,
  messagesRequestSchema,
  countTokensRequestSchema,
} from '../../wire/anthropic/request.ts';
import { encodeMessage, type MessageEnvelope } from '../../wire/anthropic/response.ts';
import { encodeMessageStream } from '../../wire/anthropic/stream.ts';
import { eventStream } from '../../wire/event-stream.ts';
import { ignoredHeaders } from '../../wire/ignored.ts';
import { objectId } from '../../wire/object-id.ts';

export const createMessage: Route = {
  method: 'POST',
  path: '/messages',
  access: 'inference',
  maxBodyBytes: PUBLIC_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'Anthropic messages.',
  body: messagesRequestSchema,
  async handle({ json, signal }, { inference }) {
    const request = await inTurns(parseMessagesRequest(json()));
    const model = await inference.languageModel(request.model);
    const call = { ...request.call, abortSignal: signal };
    const envelope: MessageEnvelope = {
      id: objectId('msg_'),
      model: model.modelId,
      showThinking: request.showThinking,
    };
    const headers = ignoredHeaders(request.ignored);
    if (!request.stream) return { headers, body: encodeMessage(envelope, await model.doGenerate(call)) };
    const { stream } = await model.doStream(call);
    return { headers: { ...eventStream.headers, ...headers }, body: encodeMessageStream(envelope, stream) };
  },
};

export const countMessageTokens: Route = {
  method: 'POST',
  path: '/messages/count_tokens',
  access: 'inference',
  maxBodyBytes: PUBLIC_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'Count the tokens of an Anthropic message request.',
  body: countTokensRequestSchema,
  async handle({ json, signal }, { inference }) {
    const { model, call, ignored } = await inTurns(parseCountTokensRequest(json()));
    const tokens = await inference.countPromptTokens(model, { ...call, abortSignal: signal });
    return { headers: ignoredHeaders(ignored), body: { input_tokens: tokens } };
  },
};
