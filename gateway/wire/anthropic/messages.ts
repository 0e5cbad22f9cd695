/**
 * Anthropic messages, the conversation: `system` and `messages` into the model port's prompt. Pure.
 *
 * Here a tool's result is a block of the user's message; in the port it is a message of its own, before what else the
 * user said.
 */
import type { LanguageModelV4Message, LanguageModelV4Prompt, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider';
import * as z from 'zod';
import type { Steps } from '../../../core/steps.ts';
import { RequestError } from '../../errors.ts';
import {
  contentBlockSchemas,
  contentParts,
  contentSchema,
  isKnownBlock,
  systemBlockSchemas,
  type ContentPart,
  type Ignore,
} from './content.ts';
import { jsonObjectSchema } from '../json-object.ts';

const toolResultBlockSchema = z.object({
  type: z.literal('tool_result'),
  tool_use_id: z.string(),
  content: contentSchema(contentBlockSchemas).nullish(),
  is_error: z.boolean().nullish(),
});
type ToolResultBlock = z.output<typeof toolResultBlockSchema>;

const thinkingBlockSchema = z.object({ type: z.literal('thinking'), thinking: z.string() });

const toolUseBlockSchema = z.object({
  type: z.literal('tool_use'),
  id: z.string().min(1),
  name: z.string().min(1),
  input: jsonObjectSchema,
});

const [textBlockSchema] = contentBlockSchemas;
export const systemSchema = contentSchema(systemBlockSchemas);
const userContentSchema = contentSchema([...contentBlockSchemas, toolResultBlockSchema]);
const assistantContentSchema = contentSchema([textBlockSchema, thinkingBlockSchema, toolUseBlockSchema]);

export const messageSchema = z.discriminatedUnion(
  'role',
  [
    z.object({ role: z.literal('system'), content: systemSchema }),
    z.object({ role: z.literal('user'), content: userContentSchema }),
    z.object({ role: z.literal('assistant'), content: assistantContentSchema }),
  ],
  { error: 'expected the role "user", "assistant" or "system"' },
);

type System = z.output<typeof systemSchema>;
type UserContent = z.output<typeof userContentSchema>;
type AssistantContent = z.output<typeof assistantContentSchema>;
type PortAssistantContent = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'];

interface Conversation {
  readonly system?: System | null | undefined;
  readonly messages: readonly z.output<typeof messageSchema>[];
}

/** @throws {RequestError} `bad_request` for a tool result whose call is not in the conversation */
export function* parsePrompt({ system, messages }: Conversation, ignore: Ignore): Steps<LanguageModelV4Prompt> {
  const toolNames = new Map<string, string>();
  const prompt: LanguageModelV4Prompt = systemMessages(system ?? '', ignore);
  for (const [index, message] of messages.entries()) {
    switch (message.role) {
      case 'system':
        prompt.push(...systemMessages(message.content, ignore));
        break;
      case 'user':
        prompt.push(...(yield* userMessages(message.content, { toolNames, ignore, path: `messages[${index}]` })));
        break;
      case 'assistant':
        prompt.push(assistantMessage(message.content, toolNames, ignore));
        break;
    }
    yield;
  }
  return prompt;
}

/**
 * Claude Code begins its system prompt with a block `x-anthropic-billing-header: …` that is different in each request.
 * It is meant for a server and says nothing to a model, but would keep every prompt from sharing a prefix with the last.
 */
const SERVER_HEADER_BLOCK = /^x-anthropic-/;

/** Blocks are joined into one message, as paragraphs; nothing to say is no message. */
function systemMessages(content: System, ignore: Ignore): LanguageModelV4Message[] {
  const text = typeof content === 'string' ? content : systemText(content, ignore);
  return text === '' ? [] : [{ role: 'system', content: text }];
}

function systemText(blocks: Exclude<System, string>, ignore: Ignore): string {
  const texts = blocks.flatMap((block) => (isKnownBlock(block, ignore) ? [block.text] : []));
  if (texts.some((text) => SERVER_HEADER_BLOCK.test(text))) ignore('system.x-anthropic');
  return texts.filter((text) => text !== '' && !SERVER_HEADER_BLOCK.test(text)).join('\n\n');
}

interface UserContext {
  /** Names of the tools by the ids of the calls so far. */
  readonly toolNames: ReadonlyMap<string, string>;
  readonly ignore: Ignore;
  readonly path: string;
}

function* userMessages(
  content: UserContent,
  { toolNames, ignore, path }: UserContext,
): Steps<LanguageModelV4Message[]> {
  if (typeof content === 'string') return [{ role: 'user', content: [{ type: 'text', text: content }] }];
  const results: LanguageModelV4Message[] = [];
  const said: ContentPart[] = [];
  for (const [index, block] of content.entries()) {
    yield;
    if (!isKnownBlock(block, ignore)) continue;
    if (block.type !== 'tool_result') {
      said.push(...(yield* contentParts(block)));
      continue;
    }
    const toolName = toolNames.get(block.tool_use_id);
    if (toolName === undefined) throw unknownCall(`${path}.content[${index}].tool_use_id`);
    const output = yield* toolOutput(block, ignore);
    results.push({
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: block.tool_use_id, toolName, output }],
    });
  }
  return said.length === 0 && results.length > 0 ? results : [...results, { role: 'user', content: said }];
}

function unknownCall(param: string): RequestError {
  return new RequestError('bad_request', `${param}: no message before it has a tool_use block with this id`, { param });
}

function* toolOutput(
  { content, is_error: isError }: ToolResultBlock,
  ignore: Ignore,
): Steps<LanguageModelV4ToolResultOutput> {
  const type = isError === true ? 'error-text' : 'text';
  if (typeof content === 'string') return { type, value: content };
  const parts: ContentPart[] = [];
  for (const block of content ?? []) {
    if (isKnownBlock(block, ignore)) parts.push(...(yield* contentParts(block)));
    yield;
  }
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  if (texts.length === parts.length) return { type, value: texts.join('') };
  return { type: 'content', value: parts };
}

/** The last message may be the assistant's: the model then goes on from where that ends. */
function assistantMessage(
  content: AssistantContent,
  toolNames: Map<string, string>,
  ignore: Ignore,
): LanguageModelV4Message {
  const blocks = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
  const parts = blocks.flatMap((block): PortAssistantContent => {
    if (!isKnownBlock(block, ignore)) return [];
    switch (block.type) {
      case 'text':
        return block.text === '' ? [] : [block];
      case 'thinking':
        // Empty where the client had asked not to be shown it.
        return block.thinking === '' ? [] : [{ type: 'reasoning', text: block.thinking }];
      case 'tool_use':
        toolNames.set(block.id, block.name);
        return [{ type: 'tool-call', toolCallId: block.id, toolName: block.name, input: block.input }];
    }
  });
  return { role: 'assistant', content: parts };
}
