/**
 * Open Responses, the request: `POST /v1/responses` into a call of the model port. Pure; what was stored of earlier
 * responses is passed in. Schema: https://www.openresponses.org/specification (`CreateResponseBody`).
 *
 * Unknown fields are let through, since clients send what their own server understands. A known field that we can't
 * honour is refused, but for two kinds of wishes which clients send without being asked, and which change how an
 * answer is made rather than what it is: tools that OpenAI hosts, and hints. Those are left out and named.
 */
import * as z from 'zod';
import { PROVIDER, type ModelCall, type ModelOptions } from '../../../core/inference/model-port.ts';
import type { Steps } from '../../../core/steps.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import { parseItems, parseItemsIfAny, unreadItems } from '../../json-items.ts';
import { defined } from '../defined.ts';
import { jsonObjectSchema } from '../json-object.ts';
import { REASONING_EFFORTS } from '../reasoning-effort.ts';
import { inputItemSchema, resolveInput } from './input.ts';
import type { Item } from './items.ts';
import { parsePrompt } from './prompt.ts';
import { withoutOldest } from './truncation.ts';
import { parseTools, portTools, toolChoiceSchema, toolSchema, type Tools } from './tools.ts';

/** The contract's own default for this style; settings and the model's file go before it. */
export const DEFAULT_TEMPERATURE = 0.7;

const formatSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    name: z.string().default('response'),
    description: z.string().nullish(),
    schema: jsonObjectSchema.nullish(),
    strict: z.boolean().nullish(),
  }),
]);

const reasoningSchema = z.looseObject({
  effort: z.enum(REASONING_EFFORTS).nullish(),
  summary: z.enum(['auto', 'concise', 'detailed']).nullish(),
});

/** At most 16 pairs, of at most 64 and 512 characters. */
const metadataSchema = z
  .record(z.string().max(64), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= 16, { error: 'expected at most 16 pairs' });

/** Of `include`: thoughts in a form that a client can send back where it keeps nothing else of them. */
export const INCLUDE_THOUGHTS = 'reasoning.encrypted_content';

const INPUT_ERROR = { error: 'expected a string or an array of items' };

export const responsesRequestSchema = z.looseObject({
  model: z.string().min(1),
  input: z.union([z.string(), z.array(inputItemSchema)], INPUT_ERROR),
  instructions: z.string().nullish(),
  previous_response_id: z.string().min(1).max(128).nullish(),
  store: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  tools: z.array(toolSchema).nullish(),
  tool_choice: toolChoiceSchema.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  max_tool_calls: z.int().min(1).nullish(),
  text: z
    .looseObject({ format: formatSchema.nullish(), verbosity: z.enum(['low', 'medium', 'high']).nullish() })
    .nullish(),
  reasoning: reasoningSchema.nullish(),
  metadata: metadataSchema.nullish(),
  include: z.array(z.string()).nullish(),
  user: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  truncation: z.enum(['auto', 'disabled']).nullish(),
  background: z.boolean().nullish(),
  top_logprobs: z.int().nullish(),
  conversation: z.unknown().optional(),
  context_management: z.unknown().optional(),
  prompt: z.unknown().optional(),
});
export type ResponsesBody = z.output<typeof responsesRequestSchema>;

const outlineSchema = responsesRequestSchema.extend({
  input: z.union([z.string(), unreadItems], INPUT_ERROR),
  tools: unreadItems.nullish(),
});

/** What may be asked about a conversation to which nothing is added: how long it is, say. */
export const conversationRequestSchema = responsesRequestSchema.extend({
  input: z.union([z.string(), z.array(inputItemSchema)], INPUT_ERROR).nullish(),
});

const conversationOutlineSchema = outlineSchema.extend({
  input: z.union([z.string(), unreadItems], INPUT_ERROR).nullish(),
});

type Outline = z.output<typeof outlineSchema>;

/** @throws {RequestError} `bad_request` that names the field at fault */
export function* parseResponsesBody(json: unknown): Steps<ResponsesBody> {
  const outline = parseBody(outlineSchema, json);
  refuseUnavailable(outline);
  if (outline.input.length === 0 && (typeof outline.input === 'string' || outline.previous_response_id == null)) {
    refuse('input', 'expected something to answer');
  }
  return yield* withItems(outline);
}

/** A body that need not add anything. @throws {RequestError} `bad_request` that names the field at fault */
export function* parseConversationBody(json: unknown): Steps<ResponsesBody> {
  const { input, ...outline } = parseBody(conversationOutlineSchema, json);
  refuseUnavailable(outline);
  return yield* withItems({ ...outline, input: input ?? [] });
}

function* withItems(outline: Outline): Steps<ResponsesBody> {
  yield;
  const sent = outline.input;
  const input = typeof sent === 'string' ? sent : yield* parseItems(inputItemSchema, sent, 'input');
  const tools = yield* parseItemsIfAny(toolSchema, outline.tools, 'tools');
  return { ...outline, input, tools };
}

function refuse(param: string, message: string): never {
  throw new RequestError('bad_request', `${param}: ${message}`, { param });
}

function refuseUnavailable(body: Pick<Outline, 'conversation' | 'prompt' | 'top_logprobs' | 'include'>): void {
  if (body.conversation != null) refuse('conversation', 'use previous_response_id to go on with a conversation');
  if (body.prompt != null) refuse('prompt', 'there are no stored prompts here; send instructions and input');
  if ((body.top_logprobs ?? 0) > 0) refuse('top_logprobs', 'token probabilities are not available');
  if (body.include?.includes('message.output_text.logprobs') === true) {
    refuse('include', 'token probabilities are not available');
  }
}

/** What earlier responses, as far as they were stored, have to do with a request. */
export interface Earlier {
  /** All that was said up to `previous_response_id`, oldest first. */
  readonly conversation: readonly Item[];
  /** Looks up an item of any stored response. */
  readonly findItem: (id: string) => Item | undefined;
}

export interface ResponsesRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly store: boolean;
  readonly call: ModelCall;
  /** All that the call is about, oldest first. */
  readonly items: () => readonly Item[];
  /** The call without so many of the oldest items: those that can be left out, at the most. */
  readonly shorten: (oldest: number) => Steps<ShortenedCall>;
  readonly tools: Tools;
  /** What this request adds to the conversation. */
  readonly input: readonly Item[];
  /** Where in the request there was something that is left out: `tools.web_search`, say. */
  readonly ignored: readonly string[];
}

interface ShortenedCall {
  readonly call: ModelCall;
  /** How many items were left out, with what makes no sense without them. */
  readonly dropped: number;
}

/**
 * @param key names the new items; see `itemId`
 * @throws {RequestError} for input that refers to what is not there
 */
export function* parseResponsesRequest(
  body: ResponsesBody,
  earlier: Earlier & { readonly key: string },
): Steps<ResponsesRequest> {
  const tools = yield* parseTools(body.tools ?? []);
  const sent = typeof body.input === 'string' ? [userMessage(body.input)] : body.input;
  const input = yield* resolveInput(sent, earlier);
  const items = [...earlier.conversation, ...input.items];
  const callOf = function* (kept: readonly Item[]): Steps<ModelCall> {
    return { ...optionsOf(body, tools), prompt: yield* promptOf(kept, { body, tools }) };
  };
  return {
    model: body.model,
    stream: body.stream ?? false,
    store: body.store ?? true,
    tools,
    input: input.items,
    ignored: [...new Set([...tools.ignored, ...input.ignored, ...ignoredHints(body)])],
    call: yield* callOf(items),
    items: () => items,
    *shorten(oldest) {
      const kept = withoutOldest(items, oldest);
      return { call: yield* callOf(kept), dropped: items.length - kept.length };
    },
  };
}

interface Parsed {
  readonly body: ResponsesBody;
  readonly tools: Tools;
}

function promptOf(items: readonly Item[], { body, tools }: Parsed): Steps<ModelCall['prompt']> {
  const instructions = body.instructions ?? undefined;
  return parsePrompt({ instructions, items, modelName: (called) => tools.modelName(called) });
}

function optionsOf(body: ResponsesBody, tools: Tools): Omit<ModelCall, 'prompt'> {
  return {
    ...defined({
      maxOutputTokens: body.max_output_tokens,
      temperature: body.temperature,
      topP: body.top_p,
      frequencyPenalty: body.frequency_penalty,
      presencePenalty: body.presence_penalty,
      responseFormat: responseFormat(body),
    }),
    ...portTools(tools, body.tool_choice ?? 'auto'),
    ...defined({ reasoning: body.reasoning?.effort ?? undefined }),
    providerOptions: { [PROVIDER]: modelOptions(body) },
  };
}

function userMessage(content: string) {
  return { type: 'message' as const, role: 'user' as const, content };
}

/** A model is as wordy as it is, and of tools that only another service runs there is nothing to include. */
function ignoredHints({ text, include, context_management: management }: ResponsesBody): string[] {
  // `medium` is what clients send to say nothing.
  const wordiness = text?.verbosity == null || text.verbosity === 'medium' ? [] : ['text.verbosity'];
  const included = (include ?? []).filter((name) => name !== INCLUDE_THOUGHTS).map((name) => `include.${name}`);
  return [...wordiness, ...included, ...(management == null ? [] : ['context_management'])];
}

function responseFormat({ text }: ResponsesBody): ModelCall['responseFormat'] {
  const format = text?.format;
  if (format?.type === 'json_object') return { type: 'json' };
  if (format?.type !== 'json_schema') return undefined;
  const { name, description, schema } = format;
  return { type: 'json', name, ...defined({ schema, description }) };
}

function modelOptions(body: ResponsesBody): ModelOptions {
  return {
    // One call in all is one call at a time; more than that a model can't be held to, and here no tool runs by itself.
    ...defined({ parallelToolCalls: body.max_tool_calls === 1 ? false : body.parallel_tool_calls }),
    ...(body.text?.format?.type === 'json_schema' && body.text.format.strict === true
      ? { strictResponseFormat: true }
      : {}),
    styleDefaults: { temperature: DEFAULT_TEMPERATURE },
  };
}
