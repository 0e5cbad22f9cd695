/**
 * `POST /v1/responses`: Open Responses. Tools that the model calls are run by the client, never here. What comes of it is
 * kept for a day, for the same caller alone, unless the client asks for it to be forgotten.
 */
import { inTurns } from '../../../core/steps.ts';
import { PUBLIC_BODY_BYTES } from '../../bounds.ts';
import type { Route } from '../../route.ts';
import { eventStream } from '../../wire/event-stream.ts';
import { parseResponsesBody, responsesRequestSchema } from '../../wire/responses/request.ts';
import { encodeResponse } from '../../wire/responses/resource.ts';
import { encodeResponseStream } from '../../wire/responses/stream.ts';
import { prepareResponse } from './prepare.ts';

export const createResponse: Route = {
  method: 'POST',
  path: '/responses',
  access: 'inference',
  maxBodyBytes: PUBLIC_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'Open Responses.',
  body: responsesRequestSchema,
  async handle(request, services) {
    const asked = await inTurns(parseResponsesBody(request.json()));
    const { envelope, model, call, headers, seconds, keep } = await prepareResponse(asked, request, services);
    if (asked.stream !== true) {
      const response = encodeResponse(envelope, await model.doGenerate(call), { completedAt: seconds() });
      return { headers, body: keep(response) };
    }
    const { stream } = await model.doStream(call);
    const events = encodeResponseStream(envelope, stream, { now: seconds, onAnswer: keep });
    return { headers: { ...eventStream.headers, ...headers }, body: events };
  },
};
