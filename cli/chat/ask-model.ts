/** One request of the running service for an answer, as it comes. */
import * as z from 'zod';
import { printable } from '../../core/printable.ts';
import { CommandError } from '../command.ts';
import type { LiveServer } from '../live-server.ts';
import type { Conversation } from './conversation.ts';

export interface Answer {
  readonly content: string;
  /** `stop`, `length`, … as OpenAI names them. */
  readonly finishReason: string;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

const usageSchema = z.object({ prompt_tokens: z.number(), completion_tokens: z.number() });

const chunkSchema = z.object({
  error: z.object({ message: z.string() }).optional(),
  choices: z
    .array(
      z.object({
        delta: z.object({ content: z.string().nullish(), reasoning_content: z.string().nullish() }),
        finish_reason: z.string().nullish(),
      }),
    )
    .default([]),
  usage: usageSchema.nullish(),
});

interface AskOptions {
  readonly signal: AbortSignal;
  readonly maxTokens?: number | undefined;
  /** Given the answer as it comes. */
  readonly onText?: (text: string) => void;
  /** Given what the model thinks before it answers. */
  readonly onReasoning?: (text: string) => void;
}

/**
 * @returns the answer, once it is whole
 * @throws {CommandError} with the service's own words, or where it went away; whatever `signal` throws when it fires
 */
export async function askModel(
  server: LiveServer,
  { model, messages }: Conversation,
  { signal, maxTokens, onText, onReasoning }: AskOptions,
): Promise<Answer> {
  const limit = maxTokens === undefined ? {} : { max_tokens: maxTokens };
  const body = { model, messages, stream: true, stream_options: { include_usage: true }, ...limit };
  let content = '';
  let finishReason: string | undefined;
  let usage: z.output<typeof usageSchema> | undefined;
  for await (const chunk of chunks(server, body, signal)) {
    if (chunk.error !== undefined) throw new CommandError(printable(chunk.error.message));
    for (const { delta, finish_reason: finish } of chunk.choices) {
      if (delta.reasoning_content) onReasoning?.(delta.reasoning_content);
      if (delta.content) onText?.(delta.content);
      content += delta.content ?? '';
      finishReason = finish ?? finishReason;
    }
    usage = chunk.usage ?? usage;
  }
  if (finishReason === undefined) throw wentAway();
  const tokens = { inputTokens: usage?.prompt_tokens ?? null, outputTokens: usage?.completion_tokens ?? null };
  return { content, finishReason, ...tokens };
}

async function* chunks(
  server: LiveServer,
  body: object,
  signal: AbortSignal,
): AsyncGenerator<z.output<typeof chunkSchema>> {
  try {
    for await (const { data } of server.inference('chat/completions', body, signal)) {
      const chunk = chunkSchema.safeParse(data);
      if (chunk.success) yield chunk.data;
    }
  } catch (error) {
    if (signal.aborted || !(error instanceof TypeError)) throw error;
    throw wentAway();
  }
}

function wentAway(): CommandError {
  return new CommandError('the service ended before the answer did. "postern status" says how it is.');
}
