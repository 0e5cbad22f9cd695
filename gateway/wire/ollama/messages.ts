/**
 * Ollama's chat messages into the model port's prompt. Pure.
 *
 * A tool's result says which call it answers by `tool_call_id`, or only by `tool_name`, or, from old clients, not at
 * all; `ollama-open-calls.ts` finds it.
 */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import * as z from 'zod';
import { mapped, type Steps } from '../../../core/steps.ts';
import { RequestError } from '../../errors.ts';
import { jsonObjectSchema } from '../json-object.ts';
import { mediaPart, type MediaPart } from '../media-part.ts';
import { createOpenCalls, type OpenCall, type OpenCalls } from './open-calls.ts';

const toolCallSchema = z.object({
  id: z.string().min(1).nullish(),
  function: z.object({
    name: z.string().min(1),
    arguments: jsonObjectSchema.nullish(),
  }),
});

const content = z.string().nullish();
/** Base64, as a `data:` URL or bare. */
const images = z.array(z.string().min(1)).nullish();

export const messageSchema = z.discriminatedUnion(
  'role',
  [
    z.object({ role: z.literal('system'), content, images }),
    z.object({ role: z.literal('user'), content, images }),
    z.object({
      role: z.literal('assistant'),
      content,
      images,
      thinking: z.string().nullish(),
      tool_calls: z.array(toolCallSchema).nullish(),
    }),
    z.object({
      role: z.literal('tool'),
      content,
      images,
      tool_name: z.string().nullish(),
      tool_call_id: z.string().nullish(),
    }),
  ],
  { error: 'expected the role "system", "user", "assistant" or "tool"' },
);
type Message = z.output<typeof messageSchema>;
type AssistantMessage = Extract<Message, { role: 'assistant' }>;
type ToolMessage = Extract<Message, { role: 'tool' }>;

/** @throws {RequestError} `bad_request` for a tool result that no call waits for */
export function* parsePrompt(messages: readonly Message[]): Steps<LanguageModelV4Prompt> {
  const prompt: LanguageModelV4Prompt = [];
  const open = createOpenCalls();
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'user') refuseImages(message, index);
    switch (message.role) {
      case 'system':
        prompt.push({ role: 'system', content: message.content ?? '' });
        break;
      case 'user':
        prompt.push({ role: 'user', content: yield* userContent(message) });
        break;
      case 'assistant': {
        const calls = toolCalls(message, index);
        for (const { toolCallId, toolName } of calls) open.add({ id: toolCallId, name: toolName });
        prompt.push({ role: 'assistant', content: [...spoken(message), ...calls] });
        break;
      }
      case 'tool': {
        const { id, name } = takeCall(open, message, index);
        const output = { type: 'text' as const, value: message.content ?? '' };
        prompt.push({ role: 'tool', content: [{ type: 'tool-result', toolCallId: id, toolName: name, output }] });
        break;
      }
    }
    yield;
  }
  return prompt;
}

function refuseImages(message: Message, index: number): void {
  if ((message.images ?? []).length === 0) return;
  const param = `messages[${index}].images`;
  throw new RequestError('bad_request', `${param}: only a message of the user can hold images`, { param });
}

type UserPart = MediaPart | { readonly type: 'text'; readonly text: string };

/** Pictures before the text, as Ollama lays them out. */
export function* userContent({
  content: text,
  images: pictures,
}: Pick<Message, 'content' | 'images'>): Steps<UserPart[]> {
  const parts = yield* mapped(pictures ?? [], (picture) => mediaPart(picture, 'image/*'));
  return [...parts, { type: 'text', text: text ?? '' }];
}

function spoken({ content: text, thinking }: AssistantMessage) {
  return [
    ...(thinking ? [{ type: 'reasoning' as const, text: thinking }] : []),
    ...(text ? [{ type: 'text' as const, text }] : []),
  ];
}

/** Ids are young in this style: a call that has none gets one from its place. */
function toolCalls(message: AssistantMessage, messageIndex: number) {
  return (message.tool_calls ?? []).map(({ id, function: { name, arguments: input } }, index) => ({
    type: 'tool-call' as const,
    toolCallId: id ?? `call_${messageIndex}_${index}`,
    toolName: name,
    input: input ?? {},
  }));
}

/** @throws {RequestError} `bad_request` where no call waits for this result */
function takeCall(open: OpenCalls, message: ToolMessage, index: number): OpenCall {
  const call = open.take(message);
  if (call !== undefined) return call;
  const { tool_call_id: id, tool_name: name } = message;
  const param = `messages[${index}]${name ? '.tool_name' : id ? '.tool_call_id' : ''}`;
  throw new RequestError('bad_request', `${param}: no assistant message before it has such a call without a result`, {
    param,
  });
}
