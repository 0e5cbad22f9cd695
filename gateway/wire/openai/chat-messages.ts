/** OpenAI chat completions, the messages: into the model port's prompt. Pure. */
import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider';
import * as z from 'zod';
import { mapped, type Steps } from '../../../core/steps.ts';
import { RequestError } from '../../errors.ts';
import { base64Part, mediaPart, type MediaPart } from '../media-part.ts';
import { createToolArgumentsParser, type ParseToolArguments } from '../tool-arguments.ts';

const textPartSchema = z.object({ type: z.literal('text'), text: z.string() });

const textContent = z.union([z.string(), z.array(textPartSchema)], {
  error: 'expected a string or an array of text parts',
});

const userPartSchema = z.discriminatedUnion('type', [
  textPartSchema,
  z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) }),
  z.object({ type: z.literal('input_audio'), input_audio: z.object({ data: z.string(), format: z.string() }) }),
  z.object({ type: z.literal('file'), file: z.looseObject({ file_data: z.string().nullish() }) }),
]);

const assistantPartSchema = z.discriminatedUnion('type', [
  textPartSchema,
  z.object({ type: z.literal('refusal'), refusal: z.string() }),
]);

const toolCallSchema = z.object({
  id: z.string().min(1),
  type: z.literal('function').default('function'),
  function: z.object({ name: z.string().min(1), arguments: z.string() }),
});

export const messageSchema = z.discriminatedUnion(
  'role',
  [
    z.object({ role: z.literal(['system', 'developer']), content: textContent }),
    z.object({ role: z.literal('user'), content: z.union([z.string(), z.array(userPartSchema)]) }),
    z.object({
      role: z.literal('assistant'),
      content: z.union([z.string(), z.array(assistantPartSchema)]).nullish(),
      refusal: z.string().nullish(),
      reasoning_content: z.string().nullish(),
      tool_calls: z.array(toolCallSchema).nullish(),
    }),
    z.object({ role: z.literal('tool'), tool_call_id: z.string(), content: textContent }),
  ],
  { error: 'expected the role "system", "developer", "user", "assistant" or "tool"' },
);
type Message = z.output<typeof messageSchema>;
type AssistantMessage = Extract<Message, { role: 'assistant' }>;
type AssistantContent = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'];

/** @throws {RequestError} `bad_request` for a tool result whose call is not in the conversation */
export function* parsePrompt(messages: readonly Message[]): Steps<LanguageModelV4Prompt> {
  const prompt: LanguageModelV4Prompt = [];
  const toolNames = new Map<string, string>();
  const parseArguments = createToolArgumentsParser();
  for (const [index, message] of messages.entries()) {
    switch (message.role) {
      case 'system':
      case 'developer':
        prompt.push({ role: 'system', content: plainText(message.content) });
        break;
      case 'user':
        prompt.push({ role: 'user', content: yield* userContent(message.content) });
        break;
      case 'assistant':
        for (const call of message.tool_calls ?? []) toolNames.set(call.id, call.function.name);
        prompt.push({ role: 'assistant', content: yield* assistantContent(message, parseArguments) });
        break;
      case 'tool': {
        const toolName = toolNames.get(message.tool_call_id);
        if (toolName === undefined) throw unknownCall(index);
        const output = { type: 'text' as const, value: plainText(message.content) };
        const result = { type: 'tool-result' as const, toolCallId: message.tool_call_id, toolName, output };
        prompt.push({ role: 'tool', content: [result] });
        break;
      }
    }
    yield;
  }
  return prompt;
}

function unknownCall(index: number): RequestError {
  const param = `messages[${index}].tool_call_id`;
  return new RequestError('bad_request', `${param}: no assistant message before it has a tool call with this id`, {
    param,
  });
}

function plainText(content: string | readonly { readonly text: string }[]): string {
  return typeof content === 'string' ? content : content.map((part) => part.text).join('');
}

type UserMessage = Extract<Message, { role: 'user' }>;
type UserPart = MediaPart | { readonly type: 'text'; readonly text: string };

function* userContent(content: UserMessage['content']): Steps<UserPart[]> {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : yield* mapped(content, userPart);
}

function userPart(part: Exclude<UserMessage['content'], string>[number]): UserPart {
  switch (part.type) {
    case 'text':
      return part;
    case 'image_url':
      return mediaPart(part.image_url.url, 'image/*');
    case 'input_audio':
      return base64Part(part.input_audio.data, `audio/${part.input_audio.format}`);
    case 'file':
      return mediaPart(part.file.file_data ?? '', 'application/octet-stream');
  }
}

function* assistantContent(message: AssistantMessage, parseArguments: ParseToolArguments): Steps<AssistantContent> {
  const { content, refusal, reasoning_content: reasoning, tool_calls: calls } = message;
  const texts =
    typeof content === 'string'
      ? [content]
      : (content ?? []).map((part) => (part.type === 'text' ? part.text : part.refusal));
  const toolCalls = yield* mapped(calls ?? [], (call) => ({
    type: 'tool-call' as const,
    toolCallId: call.id,
    toolName: call.function.name,
    input: parseArguments(call.function.arguments),
  }));
  return [
    ...(reasoning ? [{ type: 'reasoning' as const, text: reasoning }] : []),
    ...[...texts, refusal ?? ''].filter((text) => text !== '').map((text) => ({ type: 'text' as const, text })),
    ...toolCalls,
  ];
}
