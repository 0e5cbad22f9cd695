/**
 * OpenAI chat completions, the request: `POST /v1/chat/completions` into a call of the model port. Pure.
 *
 * Unknown fields are let through, since clients send what their own server understands. A known field that we can't
 * honour is refused: an answer that silently differs from what was asked for is worse than none.
 */
import type { LanguageModelV4ToolChoice, LanguageModelV4FunctionTool } from '@ai-sdk/provider';
import * as z from 'zod';
import { PROVIDER, type ModelCall, type ModelOptions } from '../../../core/inference/model-port.ts';
import type { Steps } from '../../../core/steps.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import { parseItems, parseItemsIfAny, unreadItems } from '../../json-items.ts';
import { defined } from '../defined.ts';
import { jsonObjectSchema } from '../json-object.ts';
import { messageSchema, parsePrompt } from './chat-messages.ts';
import { samplingCall, samplingFields } from './sampling.ts';
import { REASONING_EFFORTS } from '../reasoning-effort.ts';
import { tokenLimit, tokenLimitSchema } from '../unbounded.ts';

const functionToolSchema = z.object({
  type: z.literal('function', { error: 'only tools of type "function" can be used here' }),
  function: z.object({
    name: z.string().regex(/^[\w.-]{1,64}$/, 'expected 1 to 64 letters, digits, "_", "-" or "."'),
    description: z.string().nullish(),
    parameters: jsonObjectSchema.nullish(),
    strict: z.boolean().nullish(),
  }),
});

const namedToolSchema = z.object({ type: z.literal('function'), function: z.object({ name: z.string() }) });

const toolChoiceSchema = z.union([
  z.enum(['none', 'auto', 'required']),
  namedToolSchema,
  z.object({
    type: z.literal('allowed_tools'),
    allowed_tools: z.object({ mode: z.enum(['auto', 'required']), tools: z.array(namedToolSchema) }),
  }),
]);

const responseFormatSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: z.object({
      name: z.string(),
      description: z.string().nullish(),
      schema: jsonObjectSchema.nullish(),
      strict: z.boolean().nullish(),
    }),
  }),
]);

export const chatRequestSchema = z.looseObject({
  model: z.string().min(1),
  messages: z.array(messageSchema).min(1),
  max_tokens: tokenLimitSchema.nullish(),
  max_completion_tokens: tokenLimitSchema.nullish(),
  ...samplingFields,
  tools: z.array(functionToolSchema).nullish(),
  tool_choice: toolChoiceSchema.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: responseFormatSchema.nullish(),
  reasoning_effort: z.enum(REASONING_EFFORTS).nullish(),
  enable_thinking: z.boolean().nullish(),
  chat_template_kwargs: z.looseObject({ enable_thinking: z.boolean().nullish() }).nullish(),
  session_id: z.string().nullish(),
  n: z.int().nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().nullish(),
  logit_bias: z.record(z.string(), z.number()).nullish(),
  modalities: z.array(z.string()).nullish(),
  functions: z.unknown().optional(),
  function_call: z.unknown().optional(),
});
type ChatRequestBody = z.output<typeof chatRequestSchema>;

const outlineSchema = chatRequestSchema.extend({ messages: unreadItems.min(1), tools: unreadItems.nullish() });

export interface ChatRequest {
  readonly model: string;
  readonly call: ModelCall;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

/** @throws {RequestError} `bad_request` that names the field at fault */
export function* parseChatRequest(json: unknown): Steps<ChatRequest> {
  const body = yield* parseChatBody(json);
  refuseUnavailable(body);
  return {
    model: body.model,
    stream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
    call: {
      prompt: yield* parsePrompt(body.messages),
      ...defined({
        maxOutputTokens: tokenLimit(body.max_completion_tokens) ?? tokenLimit(body.max_tokens),
        responseFormat: responseFormat(body),
      }),
      ...samplingCall(body),
      ...toolFields(body),
      ...defined({ reasoning: reasoning(body) }),
      providerOptions: { [PROVIDER]: modelOptions(body) },
    },
  };
}

function* parseChatBody(json: unknown): Steps<ChatRequestBody> {
  const outline = parseBody(outlineSchema, json);
  yield;
  const messages = yield* parseItems(messageSchema, outline.messages, 'messages');
  const tools = yield* parseItemsIfAny(functionToolSchema, outline.tools, 'tools');
  return { ...outline, messages, tools };
}

function refuseUnavailable(body: ChatRequestBody): void {
  const refuse = (param: string, message: string): never => {
    throw new RequestError('bad_request', `${param}: ${message}`, { param });
  };
  if ((body.n ?? 1) !== 1) refuse('n', 'only one choice can be made per request; send several requests instead');
  if (body.logprobs === true || (body.top_logprobs ?? 0) > 0)
    refuse('logprobs', 'token probabilities are not available');
  if (Object.keys(body.logit_bias ?? {}).length > 0) refuse('logit_bias', 'token biases are not available');
  if (body.modalities?.some((modality) => modality !== 'text') === true) refuse('modalities', 'answers are text only');
  if (body.functions != null || body.function_call != null)
    refuse('functions', 'this form is long deprecated; use tools and tool_choice');
}

function responseFormat({ response_format: format }: ChatRequestBody): ModelCall['responseFormat'] {
  if (format?.type === 'json_object') return { type: 'json' };
  if (format?.type !== 'json_schema') return undefined;
  const { name, description, schema } = format.json_schema;
  return { type: 'json', name, ...defined({ schema, description }) };
}

function isStrict({ response_format: format }: ChatRequestBody): boolean {
  return format?.type === 'json_schema' && format.json_schema.strict === true;
}

function toolFields(body: ChatRequestBody): Pick<ModelCall, 'tools' | 'toolChoice'> {
  const choice = body.tool_choice ?? 'auto';
  const list = typeof choice === 'object' && choice.type === 'allowed_tools' ? choice.allowed_tools : undefined;
  const allowed = list && new Set(list.tools.map((tool) => tool.function.name));
  const tools = (body.tools ?? [])
    .filter((tool) => allowed?.has(tool.function.name) ?? true)
    .map(({ function: { name, description, parameters, strict } }): LanguageModelV4FunctionTool => ({
      type: 'function',
      name,
      inputSchema: parameters ?? { type: 'object', properties: {} },
      ...defined({ description, strict }),
    }));
  const toolChoice = portToolChoice(choice);
  return tools.length === 0 && toolChoice.type === 'auto' ? {} : { tools, toolChoice };
}

function portToolChoice(choice: z.output<typeof toolChoiceSchema>): LanguageModelV4ToolChoice {
  if (typeof choice === 'string') return { type: choice };
  return choice.type === 'function'
    ? { type: 'tool', toolName: choice.function.name }
    : { type: choice.allowed_tools.mode };
}

/** The switch that other servers have goes before the effort. */
function reasoning(body: ChatRequestBody): ModelCall['reasoning'] {
  const thinks = body.enable_thinking ?? body.chat_template_kwargs?.enable_thinking;
  if (thinks === false) return 'none';
  const effort = body.reasoning_effort ?? undefined;
  return thinks === true && effort === 'none' ? undefined : effort;
}

function modelOptions(body: ChatRequestBody): ModelOptions {
  return defined({
    strictResponseFormat: isStrict(body) ? true : undefined,
    minP: body.min_p,
    repetitionPenalty: body.repetition_penalty,
    parallelToolCalls: body.parallel_tool_calls,
  });
}
