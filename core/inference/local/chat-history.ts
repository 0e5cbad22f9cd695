/**
 * The model port's prompt into the engine's chat history. Pure.
 *
 * They differ in one thing that matters: for the engine a tool's result is a part of the model's own turn, beside
 * the call it answers. So everything from one user message to the next becomes a single model turn here.
 */
import type { LanguageModelV4Message, LanguageModelV4Prompt, LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import type { ChatHistoryItem, ChatModelFunctionCall, ChatModelResponse } from 'node-llama-cpp';
import { ServiceError } from '../../errors.ts';

type AssistantMessage = Extract<LanguageModelV4Message, { role: 'assistant' }>;
type UserMessage = Extract<LanguageModelV4Message, { role: 'user' }>;

/** @throws {ServiceError} `unsupported` for images, audio and files: the engine reads text only */
export function chatHistory(prompt: LanguageModelV4Prompt): ChatHistoryItem[] {
  const history: ChatHistoryItem[] = [];
  const results = new Map<string, string>();
  for (const message of prompt) if (message.role === 'tool') collectResults(message.content, results);
  for (const message of prompt) {
    switch (message.role) {
      case 'system':
        history.push({ type: 'system', text: message.content });
        break;
      case 'user':
        history.push({ type: 'user', text: userText(message) });
        break;
      case 'assistant':
        modelTurn(history).response.push(...responseItems(message, results));
        break;
      case 'tool':
        // Its results went beside their calls.
        break;
    }
  }
  return history;
}

/** The turn that the model is in the middle of, or a new one. */
function modelTurn(history: ChatHistoryItem[]): ChatModelResponse {
  const last = history.at(-1);
  if (last?.type === 'model') return last;
  const turn: ChatModelResponse = { type: 'model', response: [] };
  history.push(turn);
  return turn;
}

function userText(message: UserMessage): string {
  return message.content.map((part) => (part.type === 'text' ? part.text : refuseFile(part.mediaType))).join('');
}

function responseItems(message: AssistantMessage, results: ReadonlyMap<string, string>): ChatModelResponse['response'] {
  const items: ChatModelResponse['response'] = [];
  let isFirstCall = true;
  for (const part of message.content) {
    switch (part.type) {
      case 'text':
        items.push(part.text);
        break;
      case 'reasoning':
        items.push({ type: 'segment', segmentType: 'thought', text: part.text, ended: true });
        break;
      case 'tool-call':
        items.push(functionCall(part.toolName, part.input, results.get(part.toolCallId), isFirstCall));
        isFirstCall = false;
        break;
      case 'file':
      case 'reasoning-file':
        refuseFile(part.mediaType);
        break;
      case 'tool-result':
      case 'custom':
        // Only another provider writes these: one that runs tools by itself, or has parts of its own kind.
        break;
    }
  }
  return items;
}

/** @param startsNewChunk false for the further calls of one turn: the engine renders those as made in parallel */
function functionCall(
  name: string,
  input: unknown,
  result: string | undefined,
  startsNewChunk: boolean,
): ChatModelFunctionCall {
  return { type: 'functionCall', name, params: input, result: result ?? '', startsNewChunk };
}

type ToolMessagePart = Extract<LanguageModelV4Message, { role: 'tool' }>['content'][number];

function collectResults(parts: readonly ToolMessagePart[], results: Map<string, string>): void {
  for (const part of parts) if (part.type === 'tool-result') results.set(part.toolCallId, resultText(part));
}

function resultText({ output }: LanguageModelV4ToolResultPart): string {
  switch (output.type) {
    case 'text':
      return output.value;
    case 'error-text':
      // Chat templates have no sign for a failed call; without one the model would take the message for a result.
      return JSON.stringify({ error: output.value });
    case 'json':
    case 'error-json':
      return JSON.stringify(output.value);
    case 'execution-denied':
      return JSON.stringify({ error: output.reason ?? 'The user denied this call.' });
    case 'content':
      return output.value
        .map((part) =>
          part.type === 'text' ? part.text : refuseFile('mediaType' in part ? part.mediaType : undefined),
        )
        .join('');
  }
}

function refuseFile(mediaType: string | undefined): never {
  const what = mediaType?.split('/')[0];
  const kind = what === 'image' || what === 'audio' || what === 'video' ? `${what} input` : 'files as input';
  throw new ServiceError('unsupported', `This model does not accept ${kind}; it reads text only.`, {
    field: 'prompt',
  });
}

/** The text of a call that asks for no chat template (`raw`). */
export function rawText(prompt: LanguageModelV4Prompt): string {
  return prompt.map((message) => (message.role === 'user' ? userText(message) : '')).join('');
}
