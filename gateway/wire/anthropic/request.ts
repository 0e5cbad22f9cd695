/**
 * Anthropic messages, the request: `POST /v1/messages` and `POST /v1/messages/count_tokens` into a call of the model
 * port. Pure. https://platform.claude.com/docs/en/api/messages
 *
 * Unknown fields are let through, and so are those that mean nothing on one's own machine (`metadata`, `service_tier`,
 * `cache_control`, …). What a client may count on and won't get is named in `ignored`. A known field with a value that
 * we can't honour is refused.
 */
import * as z from 'zod';
import { PROVIDER, type ModelCall, type ModelOptions } from '../../../core/inference/model-port.ts';
import type { Steps } from '../../../core/steps.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import { parseItems, parseItemsIfAny, unreadItems } from '../../json-items.ts';
import type { Ignore } from './content.ts';
import { messageSchema, parsePrompt, systemSchema } from './messages.ts';
import { parallelToolCalls, parseTools, toolChoiceSchema, toolSchema } from './tools.ts';
import { defined } from '../defined.ts';
import { jsonObjectSchema } from '../json-object.ts';
import { stopSequences, stopSequencesSchema } from '../stop-sequences.ts';

/** The contract's default for this style. The owner's settings and the model's own file go before it. */
const DEFAULT_TEMPERATURE = 1;

const display = z.enum(['summarized', 'omitted']).nullish();

const thinkingSchema = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('enabled'), budget_tokens: z.int().min(1), display }),
    z.object({ type: z.literal('adaptive'), display }),
    z.object({ type: z.literal('disabled') }),
  ],
  { error: 'expected the type "enabled", "adaptive" or "disabled"' },
);

const outputFormatSchema = z.object({
  type: z.literal('json_schema', { error: 'expected the type "json_schema"' }),
  schema: jsonObjectSchema,
});

export const countTokensRequestSchema = z.looseObject({
  model: z.string().min(1),
  messages: z.array(messageSchema).min(1),
  system: systemSchema.nullish(),
  tools: z.array(toolSchema).nullish(),
  tool_choice: toolChoiceSchema.nullish(),
  thinking: thinkingSchema.nullish(),
  output_config: z
    .looseObject({
      effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).nullish(),
      format: outputFormatSchema.nullish(),
    })
    .nullish(),
  thread: z.unknown().optional(),
});
type CommonBody = z.output<typeof countTokensRequestSchema>;

export const messagesRequestSchema = countTokensRequestSchema.extend({
  max_tokens: z.int().min(1),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().min(0).nullish(),
  stop_sequences: stopSequencesSchema.nullish(),
  stream: z.boolean().nullish(),
});

const unreadLists = { messages: unreadItems.min(1), tools: unreadItems.nullish() };
const countTokensOutlineSchema = countTokensRequestSchema.extend(unreadLists);
const messagesOutlineSchema = messagesRequestSchema.extend(unreadLists);

export interface CountTokensRequest {
  readonly model: string;
  readonly call: ModelCall;
  /** Names of what was asked for and has no effect. */
  readonly ignored: ReadonlySet<string>;
}

export interface MessagesRequest extends CountTokensRequest {
  readonly stream: boolean;
  /** False where the client wants to know only that the model thought, not what. */
  readonly showThinking: boolean;
}

/** @throws {RequestError} `bad_request` that names the field at fault */
export function* parseMessagesRequest(json: unknown): Steps<MessagesRequest> {
  const body = parseBody(messagesOutlineSchema, json);
  const { model, call, ignored } = yield* parseCommon(body);
  return {
    model,
    ignored,
    stream: body.stream ?? false,
    showThinking: body.thinking == null || body.thinking.type === 'disabled' || body.thinking.display !== 'omitted',
    call: {
      ...call,
      maxOutputTokens: body.max_tokens,
      ...defined({
        temperature: body.temperature,
        topP: body.top_p,
        topK: body.top_k,
        stopSequences: stopSequences(body.stop_sequences),
      }),
    },
  };
}

/** What is counted is what `parseMessagesRequest` makes of the same body. @throws {RequestError} `bad_request` */
export function* parseCountTokensRequest(json: unknown): Steps<CountTokensRequest> {
  return yield* parseCommon(parseBody(countTokensOutlineSchema, json));
}

const NO_THREADS = 'thread: conversations are not kept here; send all messages with each request';

function* parseCommon(outline: z.output<typeof countTokensOutlineSchema>): Steps<CountTokensRequest> {
  yield;
  const messages = yield* parseItems(messageSchema, outline.messages, 'messages');
  const tools = yield* parseItemsIfAny(toolSchema, outline.tools, 'tools');
  const body = { ...outline, messages, tools };
  if (body.thread != null) throw new RequestError('bad_request', NO_THREADS, { param: 'thread' });
  const ignored = new Set<string>();
  const ignore: Ignore = (name) => void ignored.add(name);
  ignoreFields(body, ignore);
  return {
    model: body.model,
    ignored,
    call: {
      prompt: yield* parsePrompt(body, ignore),
      ...defined({ responseFormat: responseFormat(body), reasoning: reasoning(body) }),
      ...parseTools(body, ignore),
      providerOptions: { [PROVIDER]: modelOptions(body) },
    },
  };
}

/** Things that only a server with tools, files and storage of its own could do. */
const SERVER_SIDE_FIELDS = ['mcp_servers', 'container', 'context_management'] as const;

function ignoreFields(body: CommonBody, ignore: Ignore): void {
  for (const field of SERVER_SIDE_FIELDS) {
    const value = body[field];
    if (value != null && !(Array.isArray(value) && value.length === 0)) ignore(field);
  }
}

function responseFormat({ output_config: config }: CommonBody): ModelCall['responseFormat'] {
  return config?.format == null ? undefined : { type: 'json', schema: config.format.schema };
}

/** Nothing said leaves it to the model, as with Anthropic's own. */
function reasoning({ thinking, output_config: config }: CommonBody): ModelCall['reasoning'] {
  return thinking?.type === 'disabled' ? 'none' : (config?.effort ?? undefined);
}

function modelOptions({ thinking, tool_choice: choice }: CommonBody): ModelOptions {
  return {
    ...defined({
      thinkingBudgetTokens: thinking?.type === 'enabled' ? thinking.budget_tokens : undefined,
      parallelToolCalls: parallelToolCalls(choice),
    }),
    styleDefaults: { temperature: DEFAULT_TEMPERATURE },
  };
}
