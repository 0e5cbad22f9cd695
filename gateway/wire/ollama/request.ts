/**
 * Ollama's `POST /api/chat` and `POST /api/generate` into a call of the model port. Pure. Both stream unless told not
 * to, and both, sent without anything to answer, ask to load the model or to let go of it.
 *
 * Unknown fields are let through, since clients send what their own server understands. A known field that we can't
 * honour is refused, but for four that clients send without need: what `ollama-options.ts` leaves to the owner;
 * `keep_alive`, since how long a model stays is the owner's to say; `template`, since the model's own
 * is always used; and `context`, the tokens of an earlier answer, which
 * Ollama has long deprecated (no answer of ours holds one, so what a client sends is another server's).
 */
import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider';
import * as z from 'zod';
import { PROVIDER, type ModelCall } from '../../../core/inference/model-port.ts';
import type { Steps } from '../../../core/steps.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import { parseItemsIfAny, unreadItems } from '../../json-items.ts';
import { defined } from '../defined.ts';
import { jsonObjectSchema } from '../json-object.ts';
import { messageSchema, parsePrompt, userContent } from './messages.ts';
import {
  formatSchema,
  ignoredOptions,
  isZeroDuration,
  keepAliveSchema,
  modelOptions,
  optionsSchema,
  reasoning,
  refuseUnavailableOptions,
  responseFormat,
  samplingFields,
  thinkSchema,
} from './options.ts';

export type OllamaRequest =
  | (Named & { readonly task: 'answer'; readonly call: ModelCall; readonly stream: boolean })
  | (Named & { readonly task: 'load' | 'unload' });

interface Named {
  readonly model: string;
  /** Fields that were accepted and have no effect. */
  readonly ignored: readonly string[];
}

const commonFields = {
  model: z.string().min(1),
  stream: z.boolean().nullish(),
  options: optionsSchema.nullish(),
  format: formatSchema,
  think: thinkSchema,
  keep_alive: keepAliveSchema,
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().nullish(),
};

const toolSchema = z.object({
  type: z.literal('function', { error: 'only tools of type "function" can be used here' }).default('function'),
  function: z.object({
    name: z.string().regex(/^[\w.-]{1,64}$/, 'expected 1 to 64 letters, digits, "_", "-" or "."'),
    description: z.string().nullish(),
    parameters: jsonObjectSchema.nullish(),
  }),
});

export const ollamaChatRequestSchema = z.looseObject({
  ...commonFields,
  messages: z.array(messageSchema).nullish(),
  tools: z.array(toolSchema).nullish(),
});

const chatOutlineSchema = ollamaChatRequestSchema.extend({
  messages: unreadItems.nullish(),
  tools: unreadItems.nullish(),
});

export const ollamaGenerateRequestSchema = z.looseObject({
  ...commonFields,
  prompt: z.string().nullish(),
  system: z.string().nullish(),
  suffix: z.string().nullish(),
  template: z.string().nullish(),
  raw: z.boolean().nullish(),
  images: z.array(z.string().min(1)).nullish(),
  /** Numbers, which nobody reads. */
  context: unreadItems.nullish(),
});
type GenerateBody = z.output<typeof ollamaGenerateRequestSchema>;

/** @throws {RequestError} `bad_request` that names the field at fault */
export function* parseChatRequest(json: unknown): Steps<OllamaRequest> {
  const body = parseBody(chatOutlineSchema, json);
  refuseUnavailable(body);
  yield;
  const messages = (yield* parseItemsIfAny(messageSchema, body.messages, 'messages')) ?? [];
  const tools = (yield* parseItemsIfAny(toolSchema, body.tools, 'tools')) ?? [];
  if (messages.length === 0) return residencyRequest(body);
  return {
    task: 'answer',
    model: body.model,
    ignored: ignoredFields(body),
    stream: body.stream ?? true,
    call: { prompt: yield* parsePrompt(messages), ...commonCall(body), ...toolFields(tools) },
  };
}

/** @throws {RequestError} `bad_request` that names the field at fault */
export function* parseGenerateRequest(json: unknown): Steps<OllamaRequest> {
  const body = parseBody(ollamaGenerateRequestSchema, json);
  refuseUnavailable(body);
  refuseUnavailableToGenerate(body);
  if (!body.prompt) return residencyRequest(body);
  yield;
  const { providerOptions, ...call } = commonCall(body);
  return {
    task: 'answer',
    model: body.model,
    ignored: [
      ...ignoredFields(body),
      ...((body.context ?? []).length > 0 ? ['context'] : []),
      // Raw text has none.
      ...(body.template && body.raw !== true ? ['template'] : []),
    ],
    stream: body.stream ?? true,
    call: {
      prompt: [
        ...(body.system ? [{ role: 'system' as const, content: body.system }] : []),
        { role: 'user', content: yield* userContent({ content: body.prompt, images: body.images }) },
      ],
      ...call,
      providerOptions: { [PROVIDER]: { ...providerOptions[PROVIDER], ...(body.raw === true ? { raw: true } : {}) } },
    },
  };
}

type CommonBody = Pick<GenerateBody, keyof typeof commonFields>;

function residencyRequest(body: CommonBody): OllamaRequest {
  const isUnload = isZeroDuration(body.keep_alive);
  return {
    task: isUnload ? 'unload' : 'load',
    model: body.model,
    ignored: ignoredFields(isUnload ? { ...body, keep_alive: undefined } : body),
  };
}

function ignoredFields({ options, keep_alive: keepAlive }: CommonBody): string[] {
  return [...ignoredOptions(options ?? {}), ...(keepAlive == null || keepAlive === '' ? [] : ['keep_alive'])];
}

function commonCall(body: CommonBody) {
  const options = body.options ?? {};
  return {
    ...samplingFields(options),
    ...defined({ responseFormat: responseFormat(body.format), reasoning: reasoning(body.think) }),
    providerOptions: { [PROVIDER]: modelOptions(options) },
  };
}

function toolFields(tools: readonly z.output<typeof toolSchema>[]): Pick<ModelCall, 'tools' | 'toolChoice'> {
  if (tools.length === 0) return {};
  return {
    tools: tools.map(({ function: { name, description, parameters } }): LanguageModelV4FunctionTool => ({
      type: 'function',
      name,
      inputSchema: parameters ?? { type: 'object', properties: {} },
      ...defined({ description }),
    })),
    toolChoice: { type: 'auto' },
  };
}

function refuse(param: string, message: string): never {
  throw new RequestError('bad_request', `${param}: ${message}`, { param });
}

function refuseUnavailable(body: CommonBody): void {
  refuseUnavailableOptions(body.options ?? {});
  if (body.logprobs === true || (body.top_logprobs ?? 0) > 0)
    refuse('logprobs', 'token probabilities are not available');
}

function refuseUnavailableToGenerate({ raw, suffix, system, context, format }: GenerateBody): void {
  if (suffix) refuse('suffix', 'text can only be continued at its end; filling in the middle is not available');
  if (raw !== true) return;
  if (system) refuse('system', 'raw text has no system message; write it into the prompt');
  if ((context ?? []).length > 0) refuse('context', 'raw text has no context; write it into the prompt');
  if (responseFormat(format) !== undefined) refuse('format', 'raw text cannot be held to a format');
}
