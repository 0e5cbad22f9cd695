/**
 * Open Responses, the response object: what a response is, from its first event to its last, and when it is fetched
 * again. Schema: https://www.openresponses.org/specification (`ResponseResource`). Pure: ids and times are passed in.
 *
 * Every field of the schema is always there: those that a request may set say what it set, or else what holds then.
 */
import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import { wholeFinish } from '../answer-stream.ts';
import { itemId, outputText, responseId, type Item, type ReasoningItem } from './items.ts';
import { encodeOpaqueText } from './opaque-text.ts';
import { DEFAULT_TEMPERATURE, INCLUDE_THOUGHTS, type ResponsesBody } from './request.ts';
import type { Tools } from './tools.ts';

/** What is settled about a response before the model has said anything. */
export interface ResponseEnvelope {
  /** Names the response and its items; see `itemId`. */
  readonly key: string;
  /** How many items the input has; the numbers of the output follow theirs. */
  readonly inputItems: number;
  /** Unix time in seconds. */
  readonly createdAt: number;
  readonly model: string;
  readonly request: ResponsesBody;
  readonly tools: Tools;
}

/** How far a response has come. */
export interface Progress {
  readonly status: 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';
  readonly output: readonly Item[];
  readonly completedAt?: number;
  readonly incompleteReason?: string;
  readonly usage?: LanguageModelV4Usage;
  readonly error?: { readonly code: string; readonly message: string };
}

/** How it begins: what is made in the background waits first, as far as its client can tell. */
export function firstProgress({ request }: ResponseEnvelope): Progress {
  return { status: request.background === true ? 'queued' : 'in_progress', output: [] };
}

export type ResponseResource = ReturnType<typeof encodeResource>;

export function encodeResource(envelope: ResponseEnvelope, progress: Progress) {
  const { request, tools } = envelope;
  return {
    id: responseId(envelope.key),
    object: 'response',
    created_at: envelope.createdAt,
    completed_at: progress.completedAt ?? null,
    status: progress.status,
    incomplete_details: progress.incompleteReason === undefined ? null : { reason: progress.incompleteReason },
    error: progress.error ?? null,
    model: envelope.model,
    previous_response_id: request.previous_response_id ?? null,
    instructions: request.instructions ?? null,
    output: progress.output,
    usage: progress.usage === undefined ? null : encodeUsage(progress.usage),
    tools: tools.functions.map(({ name, description, inputSchema, strict }) => ({
      type: 'function',
      name,
      description: description ?? null,
      parameters: inputSchema,
      strict: strict ?? null,
    })),
    tool_choice: encodeToolChoice(request),
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    max_tool_calls: request.max_tool_calls ?? null,
    text: { format: encodeFormat(request), verbosity: 'medium' },
    reasoning: { effort: request.reasoning?.effort ?? null, summary: request.reasoning?.summary ?? null },
    temperature: request.temperature ?? DEFAULT_TEMPERATURE,
    top_p: request.top_p ?? 1,
    presence_penalty: request.presence_penalty ?? 0,
    frequency_penalty: request.frequency_penalty ?? 0,
    top_logprobs: 0,
    max_output_tokens: request.max_output_tokens ?? null,
    truncation: request.truncation ?? 'disabled',
    store: request.store ?? true,
    background: request.background ?? false,
    service_tier: 'default',
    metadata: request.metadata ?? {},
    user: request.user ?? null,
    safety_identifier: request.safety_identifier ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
  };
}

function encodeToolChoice({ tool_choice: choice }: ResponsesBody): string | object {
  if (choice == null || typeof choice === 'string') return choice ?? 'auto';
  if (choice.type === 'function') return { type: 'function', name: choice.name };
  const functions = choice.tools.flatMap((tool) => (tool.type === 'function' ? [tool] : []));
  return { type: 'allowed_tools', mode: choice.mode, tools: functions.map(({ type, name }) => ({ type, name })) };
}

/** The published schema allows no other `schema` here than null. */
function encodeFormat({ text }: ResponsesBody): object {
  const format = text?.format ?? { type: 'text' };
  if (format.type !== 'json_schema') return format;
  const { type, name, description, strict } = format;
  return { type, name, description: description ?? null, schema: null, strict: strict ?? false };
}

export function encodeUsage({ inputTokens, outputTokens }: LanguageModelV4Usage) {
  const input = inputTokens.total ?? 0;
  const output = outputTokens.total ?? 0;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: inputTokens.cacheRead ?? 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: outputTokens.reasoning ?? 0 },
    total_tokens: input + output,
  };
}

/** How a response ends that ended for this reason. */
export function ending(reason: LanguageModelV4FinishReason): Pick<Progress, 'status' | 'incompleteReason'> {
  switch (wholeFinish(reason)) {
    case 'length':
      return { status: 'incomplete', incompleteReason: 'max_output_tokens' };
    case 'content-filter':
      return { status: 'incomplete', incompleteReason: 'content_filter' };
    case 'stop':
    case 'tool-calls':
      return { status: 'completed' };
  }
}

interface Completion {
  /** Unix time in seconds. */
  readonly completedAt: number;
}

/** The whole answer at once. */
export function encodeResponse(
  envelope: ResponseEnvelope,
  result: LanguageModelV4GenerateResult,
  { completedAt }: Completion,
): ResponseResource {
  const end = ending(result.finishReason);
  const said = result.content.filter((part) => !isEmpty(part));
  const output = said.flatMap((part, index) => {
    const isCut = end.status === 'incomplete' && index === said.length - 1;
    return outputItem(envelope, { part, index, status: isCut ? 'incomplete' : 'completed' });
  });
  return encodeResource(envelope, { ...end, output, completedAt, usage: result.usage });
}

function isEmpty(part: LanguageModelV4Content): boolean {
  if (part.type === 'text' || part.type === 'reasoning') return part.text === '';
  return part.type !== 'tool-call';
}

interface OutputPart {
  readonly part: LanguageModelV4Content;
  readonly index: number;
  readonly status: 'completed' | 'incomplete';
}

function outputItem(envelope: ResponseEnvelope, { part, index, status }: OutputPart): Item[] {
  switch (part.type) {
    case 'text': {
      const id = outputId(envelope, 'message', index);
      return [{ type: 'message', id, status, role: 'assistant', content: [outputText(part.text)] }];
    }
    case 'reasoning':
      return [reasoningItem(envelope, index, part.text)];
    case 'tool-call': {
      const { toolCallId: call_id, toolName, input } = part;
      const id = outputId(envelope, 'function_call', index);
      const named = calledAs(envelope.tools, toolName);
      return [
        {
          type: 'function_call',
          id,
          status: isJson(input) ? 'completed' : status,
          call_id,
          ...named,
          arguments: input,
        },
      ];
    }
    default:
      return [];
  }
}

/** A call that was cut off has no whole arguments. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** @param index of the item in the output */
export function outputId({ key, inputItems }: ResponseEnvelope, type: Item['type'], index: number): string {
  return itemId(type, { key, number: inputItems + index });
}

/** A function by its name in the request, and by its namespace if it has one. */
export function calledAs(tools: Tools, modelName: string): { readonly name: string; readonly namespace?: string } {
  const { name, namespace } = tools.clientName(modelName);
  return namespace == null ? { name } : { name, namespace };
}

/**
 * Thoughts stand in an item twice: as what they are, and as their own summary. Of clients some show the one, some the
 * other, and none both.
 */
export function reasoningItem(envelope: ResponseEnvelope, index: number, text: string): ReasoningItem {
  const isIncluded = envelope.request.include?.includes(INCLUDE_THOUGHTS) === true;
  return {
    type: 'reasoning',
    id: outputId(envelope, 'reasoning', index),
    summary: [{ type: 'summary_text', text }],
    content: [{ type: 'reasoning_text', text }],
    ...(isIncluded ? { encrypted_content: encodeOpaqueText(text) } : {}),
  };
}
