/** `POST /v1/responses/input_tokens`: how long a request is for the model, without an answer to it. */
import { inTurns } from '../../../core/steps.ts';
import { ownerOf } from '../../caller.ts';
import type { Services } from '../../route.ts';
import { openResponses } from '../../wire/responses/dialect.ts';
import { inferenceRoute } from '../route-classes.ts';
import { ignoredHeaders } from '../../wire/ignored.ts';
import { objectId } from '../../wire/object-id.ts';
import { conversationRequestSchema, parseConversationBody } from '../../wire/responses/request.ts';
import { parseWithEarlier } from './earlier.ts';

export const countInputTokens = inferenceRoute({
  dialect: openResponses,
  method: 'POST',
  path: '/responses/input_tokens',
  summary: 'Count the input tokens of an Open Responses request.',
  body: conversationRequestSchema,
  async handle({ json, caller, signal }, { inference, responses }: Pick<Services, 'inference' | 'responses'>) {
    const asked = await inTurns(parseConversationBody(json()));
    const previousId = asked.previous_response_id ?? undefined;
    const context = { key: objectId(''), responses, owner: ownerOf(caller), previousId };
    const { model, call, ignored } = await inTurns(parseWithEarlier(asked, context));
    const tokens = await inference.countPromptTokens(model, { ...call, abortSignal: signal });
    return { headers: ignoredHeaders(ignored), body: { object: 'response.input_tokens', input_tokens: tokens } };
  },
});
