/** `POST /v1/chat/completions`. Tools that the model calls are run by the client, never here. */
import { inTurns } from '../../../core/steps.ts';
import type { Services } from '../../route.ts';
import { objectId } from '../../wire/object-id.ts';
import { parseChatRequest, chatRequestSchema } from '../../wire/openai/chat-request.ts';
import { encodeChatResponse, encodeChatStream, prefixHash } from '../../wire/openai/chat-response.ts';
import { openai } from '../../wire/openai/dialect.ts';
import { chatRoute } from './chat-route.ts';

export const chatCompletions = chatRoute({
  dialect: openai,
  path: '/chat/completions',
  summary: 'OpenAI chat completions.',
  body: chatRequestSchema,
  async read({ json }, { now }: Pick<Services, 'now'>) {
    const request = await inTurns(parseChatRequest(json()));
    const created = Math.floor(now() / 1000);
    return {
      ...request,
      answer(model) {
        // A prompt that the model refuses is not hashed: it may be as long as the body.
        const envelope = { id: objectId('chatcmpl-'), created, model, prefixHash: prefixHash(request.call) };
        return {
          whole: (answer) => encodeChatResponse(envelope, answer),
          stream: (parts) => encodeChatStream(envelope, parts, request),
        };
      },
    };
  },
});
