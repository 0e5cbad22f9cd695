/** `POST /v1/chat/completions`. Tools that the model calls are run by the client, never here. */
import { inTurns } from '../../../core/steps.ts';
import { PUBLIC_BODY_BYTES } from '../../bounds.ts';
import type { Route } from '../../route.ts';
import { eventStream } from '../../wire/event-stream.ts';
import { objectId } from '../../wire/object-id.ts';
import { parseChatRequest, chatRequestSchema } from '../../wire/openai/chat-request.ts';
import {
  encodeChatResponse,
  encodeChatStream,
  prefixHash,
  type ChatEnvelope,
} from '../../wire/openai/chat-response.ts';

export const chatCompletions: Route = {
  method: 'POST',
  path: '/chat/completions',
  access: 'inference',
  maxBodyBytes: PUBLIC_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'OpenAI chat completions.',
  body: chatRequestSchema,
  async handle({ json, signal }, { inference, now }) {
    const request = await inTurns(parseChatRequest(json()));
    const model = await inference.languageModel(request.model);
    const call = { ...request.call, abortSignal: signal };
    const created = Math.floor(now() / 1000);
    // A prompt that the model refuses is not hashed: it may be as long as the body.
    const envelope = (): ChatEnvelope => ({
      id: objectId('chatcmpl-'),
      created,
      model: model.modelId,
      prefixHash: prefixHash(call),
    });
    if (!request.stream) {
      const answer = await model.doGenerate(call);
      return { body: encodeChatResponse(envelope(), answer) };
    }
    const { stream } = await model.doStream(call);
    return { headers: eventStream.headers, body: encodeChatStream(envelope(), stream, request) };
  },
};
