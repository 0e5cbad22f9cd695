/** `POST /v1/messages` and `POST /v1/messages/count_tokens`. Tools that the model calls are run by the client. */
import type { Inference } from '../../../core/inference/inference.ts';
import { inTurns } from '../../../core/steps.ts';
import type { GatewayRequest } from '../../route.ts';
import { anthropic } from '../../wire/anthropic/dialect.ts';
import {
  parseCountTokensRequest,
  parseMessagesRequest,
  messagesRequestSchema,
  countTokensRequestSchema,
} from '../../wire/anthropic/request.ts';
import { encodeMessage } from '../../wire/anthropic/response.ts';
import { encodeMessageStream } from '../../wire/anthropic/stream.ts';
import { ignoredHeaders } from '../../wire/ignored.ts';
import { objectId } from '../../wire/object-id.ts';
import { inferenceRoute } from '../route-classes.ts';
import { chatRoute } from './chat-route.ts';

export const createMessage = chatRoute({
  dialect: anthropic,
  path: '/messages',
  summary: 'Anthropic messages.',
  body: messagesRequestSchema,
  async read({ json }) {
    const request = await inTurns(parseMessagesRequest(json()));
    return {
      ...request,
      headers: ignoredHeaders(request.ignored),
      answer(model) {
        const envelope = { id: objectId('msg_'), model, showThinking: request.showThinking };
        return {
          whole: (answer) => encodeMessage(envelope, answer),
          stream: (parts) => encodeMessageStream(envelope, parts),
        };
      },
    };
  },
});

interface TokenCounting {
  readonly inference: Pick<Inference, 'countPromptTokens'>;
}

export const countMessageTokens = inferenceRoute({
  dialect: anthropic,
  method: 'POST',
  path: '/messages/count_tokens',
  summary: 'Count the tokens of an Anthropic message request.',
  body: countTokensRequestSchema,
  async handle({ json, signal }: GatewayRequest, { inference }: TokenCounting) {
    const { model, call, ignored } = await inTurns(parseCountTokensRequest(json()));
    const tokens = await inference.countPromptTokens(model, { ...call, abortSignal: signal });
    return { headers: ignoredHeaders(ignored), body: { input_tokens: tokens } };
  },
});
