/** `POST /v1/completions`: goes on with a text, with no chat template around it. */
import type { Services } from '../../route.ts';
import { objectId } from '../../wire/object-id.ts';
import { parseCompletionRequest, completionRequestSchema } from '../../wire/openai/completions-request.ts';
import { encodeCompletionResponse, encodeCompletionStream } from '../../wire/openai/completions-response.ts';
import { openaiCompletions } from '../../wire/openai/dialect.ts';
import { chatRoute } from './chat-route.ts';

export const completions = chatRoute({
  dialect: openaiCompletions,
  path: '/completions',
  summary: 'OpenAI text completions: goes on from the prompt as it stands.',
  body: completionRequestSchema,
  async read({ json }, { now }: Pick<Services, 'now'>) {
    const request = parseCompletionRequest(json());
    const created = Math.floor(now() / 1000);
    return {
      ...request,
      answer(model) {
        const envelope = { id: objectId('cmpl-'), created, model, echo: request.echo };
        return {
          whole: (answer) => encodeCompletionResponse(envelope, answer),
          stream: (parts) => encodeCompletionStream(envelope, parts, request),
        };
      },
    };
  },
});
