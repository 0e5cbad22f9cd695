/**
 * `POST /v1/responses/compact`: a conversation made shorter, for a client that goes on with it. What was said to the model
 * stays as it is; what it did and said becomes a summary, which it writes itself.
 */
import type { LanguageModelV4Content } from '@ai-sdk/provider';
import { ServiceError } from '../../../core/errors.ts';
import { inTurns, type Steps } from '../../../core/steps.ts';
import { ownerOf } from '../../caller.ts';
import { RequestError } from '../../errors.ts';
import type { Services } from '../../route.ts';
import { openResponses } from '../../wire/responses/dialect.ts';
import { inferenceRoute } from '../route-classes.ts';
import { assertWhole } from '../../wire/answer-stream.ts';
import { ignoredHeaders } from '../../wire/ignored.ts';
import { objectId } from '../../wire/object-id.ts';
import { encodeCompaction } from '../../wire/responses/compaction.ts';
import type { Item } from '../../wire/responses/items.ts';
import {
  conversationRequestSchema,
  parseConversationBody,
  parseResponsesRequest,
  type ResponsesBody,
  type ResponsesRequest,
} from '../../wire/responses/request.ts';
import { earlier, type EarlierContext } from './earlier.ts';
import { fitPrompt } from './fit-prompt.ts';

const SUMMARIZE = `Summarize the conversation above, so that you can go on with it without having seen it. Keep what was decided and found out, names, numbers, files and code that matter, and what is still to be done. Write nothing but the summary.`;

/** A summary that is longer is cut there. */
const MAX_SUMMARY_TOKENS = 2048;

export const compactResponse = inferenceRoute({
  dialect: openResponses,
  method: 'POST',
  path: '/responses/compact',
  summary: 'Make a conversation shorter: what the model said becomes a summary.',
  body: conversationRequestSchema,
  async handle(
    { json, caller, signal },
    { inference, responses, now }: Pick<Services, 'inference' | 'responses' | 'now'>,
  ) {
    const asked = await inTurns(parseConversationBody(json()));
    const key = objectId('');
    const previousId = asked.previous_response_id ?? undefined;
    const context = { key, responses, owner: ownerOf(caller), previousId };
    const { request, said } = await inTurns(parseCompaction(asked, context));
    const model = await inference.languageModel(request.model);
    const { call, dropped } = await fitPrompt(request, { inference, signal, modelId: model.modelId });
    const tokens = await inference.countPromptTokens(request.model, { ...call, abortSignal: signal });
    const maxOutputTokens = Math.min(tokens, MAX_SUMMARY_TOKENS);
    const answer = await model.doGenerate({ ...call, maxOutputTokens, abortSignal: signal });
    assertWhole(answer);
    const createdAt = Math.floor(now() / 1000);
    return {
      headers: ignoredHeaders([...request.ignored, ...dropped]),
      body: encodeCompaction({ key, createdAt, said, summary: summaryOf(answer.content), usage: answer.usage }),
    };
  },
});

interface Compaction {
  readonly request: ResponsesRequest;
  /** What was said to the model, which stays. */
  readonly said: readonly Item[];
}

function* parseCompaction(asked: ResponsesBody, context: EarlierContext & { readonly key: string }): Steps<Compaction> {
  const before = yield* earlier(context);
  const { input } = yield* parseResponsesRequest(asked, { ...before, key: context.key });
  const items = [...before.conversation, ...input];
  if (items.length === 0) throw new RequestError('bad_request', 'input: expected a conversation', { param: 'input' });
  const { instructions, model } = asked;
  const body = { model, instructions, input: SUMMARIZE, max_output_tokens: MAX_SUMMARY_TOKENS };
  const request = yield* parseResponsesRequest(body, { ...before, conversation: items, key: context.key });
  return { request, said: items.filter((item) => item.type === 'message' && item.role !== 'assistant') };
}

function summaryOf(content: readonly LanguageModelV4Content[]): string {
  const summary = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  if (summary.trim() === '') throw new ServiceError('engine_failed', 'The model wrote no summary of the conversation.');
  return summary;
}
