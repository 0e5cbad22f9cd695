/**
 * `POST /v1/responses`: Open Responses. Tools that the model calls are run by the client, never here. What comes of it is
 * kept for a day, for the same caller alone, unless the client asks for it to be forgotten.
 */
import { inTurns } from '../../../core/steps.ts';
import { openResponses } from '../../wire/responses/dialect.ts';
import { parseResponsesBody, responsesRequestSchema } from '../../wire/responses/request.ts';
import { encodeResponse } from '../../wire/responses/resource.ts';
import { encodeResponseStream } from '../../wire/responses/stream.ts';
import { chatRoute } from '../inference/chat-route.ts';
import { prepareResponse, type ResponseNeeds } from './prepare.ts';

export const createResponse = chatRoute({
  dialect: openResponses,
  path: '/responses',
  summary: 'Open Responses.',
  body: responsesRequestSchema,
  async read(request, services: ResponseNeeds) {
    const asked = await inTurns(parseResponsesBody(request.json()));
    const { envelope, seconds, keep, ...prepared } = await prepareResponse(asked, request, services);
    return {
      ...prepared,
      stream: asked.stream ?? false,
      answer: () => ({
        whole: (answer) => keep(encodeResponse(envelope, answer, { completedAt: seconds() })),
        stream: (parts) => encodeResponseStream(envelope, parts, { now: seconds, onAnswer: keep }),
      }),
    };
  },
});
