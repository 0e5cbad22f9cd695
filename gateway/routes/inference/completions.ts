/** `POST /v1/completions`: goes on with a text, with no chat template around it. */
import { PUBLIC_BODY_BYTES } from '../../bounds.ts';
import type { Route } from '../../route.ts';
import { eventStream } from '../../wire/event-stream.ts';
import { objectId } from '../../wire/object-id.ts';
import { parseCompletionRequest, completionRequestSchema } from '../../wire/openai/completions-request.ts';
import {
  encodeCompletionResponse,
  encodeCompletionStream,
  type CompletionEnvelope,
} from '../../wire/openai/completions-response.ts';

export const completions: Route = {
  method: 'POST',
  path: '/completions',
  access: 'inference',
  maxBodyBytes: PUBLIC_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'OpenAI text completions: goes on from the prompt as it stands.',
  body: completionRequestSchema,
  async handle({ json, signal }, { inference, now }) {
    const request = parseCompletionRequest(json());
    const model = await inference.languageModel(request.model);
    const call = { ...request.call, abortSignal: signal };
    const envelope: CompletionEnvelope = {
      id: objectId('cmpl-'),
      created: Math.floor(now() / 1000),
      model: model.modelId,
      echo: request.echo,
    };
    if (!request.stream) return { body: encodeCompletionResponse(envelope, await model.doGenerate(call)) };
    const { stream } = await model.doStream(call);
    return { headers: eventStream.headers, body: encodeCompletionStream(envelope, stream, request) };
  },
};
