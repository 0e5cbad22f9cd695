/**
 * Ollama's answers to chat and generate: what the model port gives, as one object or as a stream of lines. Pure: the
 * clock is passed in. Both forms and both routes say the same; they differ in where an answer's text stands.
 *
 * Durations are measured on our side of the port: until the model was loaded and had its turn, from there to the first
 * piece of the answer, and from there to the end.
 */
import type { LanguageModelV4FinishReason, LanguageModelV4Usage } from '@ai-sdk/provider';
import { ServiceError } from '../../../core/errors.ts';
import { isRecord } from '../../../core/json.ts';
import type { ModelStreamPart } from '../../../core/inference/model-port.ts';
import { AnswerEnd, encodeStream, wholeFinish } from '../answer-stream.ts';
import { encodeLine } from '../ndjson.ts';
import { ollama } from './dialect.ts';
import { createToolArgumentsParser } from '../tool-arguments.ts';

export type OllamaRoute = 'chat' | 'generate';

export interface OllamaClock {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Whole nanoseconds since the request came in; never goes back. */
  readonly elapsed: () => number;
}

/** What is the same in all lines of an answer. */
export interface OllamaEnvelope {
  readonly route: OllamaRoute;
  /** By the name that the client used. */
  readonly model: string;
  readonly clock: OllamaClock;
  /** Nanoseconds until the model was loaded and began with this request. */
  readonly loadDuration: number;
}

interface ToolCall {
  readonly id: string;
  readonly function: { readonly index: number; readonly name: string; readonly arguments: Record<string, unknown> };
}

/** A piece of an answer: some text, some thought, or one tool call. */
interface Piece {
  readonly text: string;
  readonly thinking?: string;
  readonly toolCalls?: readonly ToolCall[];
}

type Line = Piece & { readonly ending?: Record<string, unknown> };

/** See `encodeStream`. */
export function encodeOllamaStream(
  envelope: OllamaEnvelope,
  parts: AsyncIterable<ModelStreamPart>,
): AsyncGenerator<string> {
  const lines = new Lines(envelope);
  return encodeStream(
    {
      encode(part) {
        const line = lines.of(part);
        return line === undefined ? '' : encodeLine(encodeAnswer(envelope, line));
      },
      fail: ollama.encodeStreamError,
    },
    parts,
  );
}

/** The same lines put together. @throws what the port's stream ends with instead of `finish` */
export async function encodeOllamaResponse(
  envelope: OllamaEnvelope,
  parts: AsyncIterable<ModelStreamPart>,
): Promise<object> {
  let [text, thinking] = ['', ''];
  let last: Record<string, unknown> = {};
  const toolCalls: ToolCall[] = [];
  const lines = new Lines(envelope);
  const end = new AnswerEnd();
  for await (const part of parts) {
    end.note(part);
    const line = lines.of(part);
    text += line?.text ?? '';
    thinking += line?.thinking ?? '';
    toolCalls.push(...(line?.toolCalls ?? []));
    last = line?.ending ?? last;
  }
  end.assertReached();
  return encodeAnswer(envelope, {
    text,
    ...(thinking === '' ? {} : { thinking }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    ending: last,
  });
}

/** The answer to a request that only asked to load the model or to let go of it; `stop` where neither was done. */
export function encodeResidency(envelope: OllamaEnvelope, reason: 'load' | 'unload' | 'stop'): object {
  const none = { prompt_eval_count: 0, prompt_eval_duration: 0, eval_count: 0, eval_duration: 0 };
  const spent = { total_duration: envelope.clock.elapsed(), load_duration: envelope.loadDuration };
  return encodeAnswer(envelope, { text: '', ending: { done_reason: reason, ...spent, ...none } });
}

/** What comes before the first piece of an answer, or after the last. */
const SAYS_NOTHING: ReadonlySet<ModelStreamPart['type']> = new Set([
  'stream-start',
  'response-metadata',
  'raw',
  'finish',
]);

class Lines {
  readonly #envelope: OllamaEnvelope;
  #firstPieceAt: number | undefined;
  #calls = 0;

  constructor(envelope: OllamaEnvelope) {
    this.#envelope = envelope;
  }

  /** @throws {ServiceError} `engine_failed` for a call that this style can't tell */
  of(part: ModelStreamPart): Line | undefined {
    if (!SAYS_NOTHING.has(part.type)) this.#firstPieceAt ??= this.#envelope.clock.elapsed();
    switch (part.type) {
      case 'text-delta':
        return part.delta === '' ? undefined : { text: part.delta };
      case 'reasoning-delta':
        return part.delta === '' ? undefined : { text: '', thinking: part.delta };
      case 'tool-call':
        return { text: '', toolCalls: [toolCall(part, this.#calls++)] };
      case 'finish':
        return { text: '', ending: ending(this.#envelope, part, this.#firstPieceAt) };
      default:
        // Starts, ends and fragments of what arrives whole in another part.
        return undefined;
    }
  }
}

/** @throws {ServiceError} for arguments that are no object: this style has no way to pass them on */
function toolCall(call: Extract<ModelStreamPart, { type: 'tool-call' }>, index: number): ToolCall {
  const input = createToolArgumentsParser()(call.input);
  if (isRecord(input)) return { id: call.toolCallId, function: { index, name: call.toolName, arguments: input } };
  throw new ServiceError('engine_failed', 'The model called a tool with arguments that are not a JSON object.');
}

function encodeAnswer({ route, model, clock }: OllamaEnvelope, { text, thinking, toolCalls, ending: end }: Line) {
  const thought = thinking === undefined ? {} : { thinking };
  const calls = toolCalls === undefined ? {} : { tool_calls: toolCalls };
  return {
    model,
    created_at: new Date(clock.now()).toISOString(),
    // Only chat takes tools, so only there can one be called.
    ...(route === 'chat'
      ? { message: { role: 'assistant', content: text, ...thought, ...calls } }
      : { response: text, ...thought }),
    done: end !== undefined,
    ...end,
  };
}

function ending(
  { clock, loadDuration }: OllamaEnvelope,
  { finishReason, usage }: { finishReason: LanguageModelV4FinishReason; usage: LanguageModelV4Usage },
  firstPieceAt: number | undefined,
): Record<string, unknown> {
  const now = clock.elapsed();
  const promptDoneAt = firstPieceAt ?? now;
  return {
    done_reason: wholeFinish(finishReason) === 'length' ? 'length' : 'stop',
    total_duration: now,
    load_duration: loadDuration,
    prompt_eval_count: usage.inputTokens.total ?? 0,
    prompt_eval_duration: promptDoneAt - loadDuration,
    eval_count: usage.outputTokens.total ?? 0,
    eval_duration: now - promptDoneAt,
  };
}
