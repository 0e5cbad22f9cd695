/**
 * Open Responses, the conversation: its items into the model port's prompt. Pure.
 *
 * What a model did in one go is several items here, and one assistant message there.
 */
import type { LanguageModelV4Message, LanguageModelV4Prompt, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider';
import { mapped, type Steps } from '../../../core/steps.ts';
import { mediaPart, type MediaPart } from '../media-part.ts';
import type { CompactionItem, ContentPart, Item, MessageItem, ReasoningItem } from './items.ts';
import { decodeOpaqueText } from './opaque-text.ts';
import type { FunctionName } from './tools.ts';
import { createToolArgumentsParser } from '../tool-arguments.ts';

type AssistantPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];
type TextPart = { readonly type: 'text'; readonly text: string };

interface Conversation {
  readonly instructions: string | undefined;
  readonly items: readonly Item[];
  /** The name by which the model knows a function. */
  readonly modelName: (called: FunctionName) => string;
}

/** @param conversation in which each `function_call_output` comes after its `function_call` */
export function* parsePrompt({ instructions, items, modelName }: Conversation): Steps<LanguageModelV4Prompt> {
  const prompt: LanguageModelV4Prompt = [];
  const toolNames = new Map<string, string>();
  const parseArguments = createToolArgumentsParser();
  if (instructions !== undefined) prompt.push({ role: 'system', content: instructions });
  for (const item of items) {
    yield;
    switch (item.type) {
      case 'message':
        yield* addMessage(prompt, item);
        break;
      case 'reasoning':
        assistantContent(prompt).push(...reasoningParts(item));
        break;
      case 'compaction':
        prompt.push({ role: 'user', content: [{ type: 'text', text: summaryText(item) }] });
        break;
      case 'function_call': {
        const toolName = modelName(item);
        toolNames.set(item.call_id, toolName);
        assistantContent(prompt).push({
          type: 'tool-call',
          toolCallId: item.call_id,
          toolName,
          input: parseArguments(item.arguments),
        });
        break;
      }
      case 'function_call_output': {
        const toolName = toolNames.get(item.call_id);
        if (toolName === undefined) throw new TypeError('a call without its function_call was let through');
        const output = yield* resultOutput(item.output);
        prompt.push({
          role: 'tool',
          content: [{ type: 'tool-result', toolCallId: item.call_id, toolName, output }],
        });
        break;
      }
    }
  }
  return prompt;
}

/** The content of the message that the model is in the middle of, or of a new one. */
function assistantContent(prompt: LanguageModelV4Prompt): AssistantPart[] {
  const last = prompt.at(-1);
  if (last?.role === 'assistant') return last.content;
  const content: AssistantPart[] = [];
  prompt.push({ role: 'assistant', content });
  return content;
}

function* addMessage(prompt: LanguageModelV4Prompt, { role, content }: MessageItem): Steps<void> {
  switch (role) {
    case 'system':
    case 'developer':
      prompt.push({ role: 'system', content: content.map(textOf).join('') });
      break;
    case 'user':
      prompt.push({ role: 'user', content: yield* mapped(content, textOrMedia) });
      break;
    case 'assistant': {
      const texts = content.map(textOf).filter((text) => text !== '');
      assistantContent(prompt).push(...texts.map((text): TextPart => ({ type: 'text', text })));
      break;
    }
  }
}

function textOf(part: ContentPart): string {
  if (part.type === 'refusal') return part.refusal;
  return 'text' in part ? part.text : '';
}

function textOrMedia(part: ContentPart): TextPart | MediaPart {
  return mediaOf(part) ?? { type: 'text', text: textOf(part) };
}

function mediaOf(part: ContentPart): MediaPart | undefined {
  if (part.type === 'input_image') return mediaPart(part.image_url, 'image/*');
  if (part.type !== 'input_file') return undefined;
  return mediaPart(part.file_data ?? part.file_url ?? '', 'application/octet-stream');
}

/** The thoughts themselves where there are any; another service's summary of them is all that it gave away. */
function reasoningParts({ content, summary }: ReasoningItem): AssistantPart[] {
  const text = (content ?? summary).map((part) => part.text).join('\n\n');
  return text === '' ? [] : [{ type: 'reasoning', text }];
}

function summaryText({ encrypted_content: content }: CompactionItem): string {
  const summary = decodeOpaqueText(content);
  if (summary === undefined) throw new TypeError('a compaction that was not made here was let through');
  return `Summary of the conversation so far:\n${summary}`;
}

function* resultOutput(output: string | readonly ContentPart[]): Steps<LanguageModelV4ToolResultOutput> {
  if (typeof output === 'string') return { type: 'text', value: output };
  if (output.every((part) => part.type !== 'input_image' && part.type !== 'input_file')) {
    return { type: 'text', value: output.map(textOf).join('') };
  }
  return { type: 'content', value: yield* mapped(output, textOrMedia) };
}
