/**
 * Anthropic messages, the answer as one body; and what its stream has in common with it. Pure: ids are passed in.
 * Every field that Anthropic's own clients parse is there, `null` where we have nothing to say.
 */
import type { LanguageModelV4Content, LanguageModelV4GenerateResult, LanguageModelV4Usage } from '@ai-sdk/provider';
import { ServiceError } from '../../../core/errors.ts';
import { isRecord } from '../../../core/json.ts';
import { PROVIDER } from '../../../core/inference/model-port.ts';
import { wholeFinish, type WholeFinish } from '../answer-stream.ts';

/** What is known of an answer before it begins. */
export interface MessageEnvelope {
  readonly id: string;
  readonly model: string;
  readonly showThinking: boolean;
}

/**
 * Anthropic signs thoughts to know its own again. Ours are not signed, and none that come back are checked; clients
 * only need some text here.
 */
export const THINKING_SIGNATURE = 'unsigned';

/** @throws {ServiceError} `engine_failed` for arguments of a tool that are not JSON */
export function encodeMessage(envelope: MessageEnvelope, result: LanguageModelV4GenerateResult): object {
  return {
    ...messageStart(envelope, 0),
    content: result.content.flatMap((part) => contentBlock(part, envelope, result.finishReason.unified === 'length')),
    ...encodeStop(result),
    usage: { ...NO_USAGE, ...encodeUsage(result.usage) },
  };
}

/** A message of which nothing has been said yet. How much of its prompt was cached is not known before its end. */
export function messageStart({ id, model }: MessageEnvelope, promptTokens: number): object {
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: { ...NO_USAGE, input_tokens: promptTokens },
  };
}

/** Anthropic has no empty blocks, and refuses to read them back. */
function contentBlock(part: LanguageModelV4Content, { showThinking }: MessageEnvelope, isCut: boolean): object[] {
  switch (part.type) {
    case 'text':
      return part.text === '' ? [] : [{ ...textBlock(), text: part.text }];
    case 'reasoning': {
      const thinking = showThinking ? part.text : '';
      return part.text === '' ? [] : [{ ...thinkingBlock(), thinking, signature: THINKING_SIGNATURE }];
    }
    case 'tool-call':
      return [{ ...toolUseBlock(part.toolCallId, part.toolName), input: parseInput(part.input, isCut) }];
    default:
      return [];
  }
}

export function textBlock(): object {
  return { type: 'text', text: '' };
}

export function thinkingBlock(): object {
  return { type: 'thinking', thinking: '', signature: '' };
}

/** @param callId the port's; ours begin with `call_`, Anthropic's with `toolu_`, and some clients look */
export function toolUseBlock(callId: string, name: string): object {
  const id = callId.replace(/^call_/, 'toolu_');
  return { type: 'tool_use', id, name, input: {}, caller: { type: 'direct' } };
}

/** Unlike in other styles the arguments are an object here, so there is no way to pass on what is none. */
/** @param isCut whether the answer was: then a call may lack its end, and this style has no word for half an object */
function parseInput(text: string, isCut: boolean): object {
  const input = parseJson(text === '' ? '{}' : text);
  if (isRecord(input)) return input;
  if (isCut) return {};
  throw new ServiceError('engine_failed', 'The model called a tool with arguments that are not a JSON object.');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const STOP_REASONS: Readonly<Record<WholeFinish, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  'tool-calls': 'tool_use',
  'content-filter': 'refusal',
};

type Stop = Pick<LanguageModelV4GenerateResult, 'finishReason' | 'providerMetadata'>;

export function encodeStop({ finishReason, providerMetadata }: Stop): object {
  const sequence = providerMetadata?.[PROVIDER]?.['stopSequence'];
  return finishReason.unified === 'stop' && typeof sequence === 'string'
    ? { stop_reason: 'stop_sequence', stop_sequence: sequence }
    : { stop_reason: STOP_REASONS[wholeFinish(finishReason)], stop_sequence: null };
}

/** `input_tokens` are those that had to be read anew; all three together are the prompt. */
export function encodeUsage({ inputTokens, outputTokens }: LanguageModelV4Usage): object {
  const cacheRead = inputTokens.cacheRead ?? 0;
  const cacheWrite = inputTokens.cacheWrite ?? 0;
  return {
    input_tokens: inputTokens.noCache ?? Math.max(0, (inputTokens.total ?? 0) - cacheRead - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: outputTokens.total ?? 0,
    output_tokens_details: { thinking_tokens: outputTokens.reasoning ?? 0 },
    server_tool_use: null,
  };
}

const NO_USAGE = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: null,
  output_tokens: 0,
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: null,
  inference_geo: null,
  speed: null,
} as const;
