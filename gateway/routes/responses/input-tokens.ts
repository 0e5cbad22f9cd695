/** `POST /v1/responses/input_tokens`: how long a request is for the model, without an answer to it. */
import { inTurns } from '../../../core/steps.ts';
import { PUBLIC_BODY_BYTES } from '../../bounds.ts';
import { ownerOf } from '../../caller.ts';
import type { Route } from '../../route.ts';
import { ignoredHeaders } from '../../wire/ignored.ts';
import { objectId } from '../../wire/object-id.ts';
import { conversationRequestSchema, parseConversationBody } from '../../wire/responses/request.ts';
import { parseWithEarlier } from './earlier.ts';

export const countInputTokens: Route = {
  method: 'POST',
  path: '/responses/input_tokens',
  access: 'inference',
  maxBodyBytes: PUBLIC_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'Count the input tokens of an Open Responses request.',
  body: conversationRequestSchema,
  async handle({ json, caller, signal }, { inference, responses }) {
    const asked = await inTurns(parseConversationBody(json()));
    const previousId = asked.previous_response_id ?? undefined;
    const context = { key: objectId(''), responses, owner: ownerOf(caller), previousId };
    const { model, call, ignored } = await inTurns(parseWithEarlier(asked, context));
    const tokens = await inference.countPromptTokens(model, { ...call, abortSignal: signal });
    return { headers: ignoredHeaders(ignored), body: { object: 'response.input_tokens', input_tokens: tokens } };
  },
};
