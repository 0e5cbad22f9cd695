/** A conversation with a model, as `chat` keeps it in memory and `/save` on the disk: the body of a chat request. */
import * as z from 'zod';
import { parseBoundedJson } from '../../core/json/json-reader.ts';

const messageSchema = z.object({ role: z.enum(['system', 'user', 'assistant']), content: z.string() });
const conversationSchema = z.object({ model: z.string().min(1), messages: z.array(messageSchema) });

export type ChatMessage = z.output<typeof messageSchema>;

/** `messages` in order; a system message, if there is one, is the first. */
export interface Conversation {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
}

export function startConversation(model: string, system?: string): Conversation {
  return withSystem({ model, messages: [] }, system);
}

export function systemOf({ messages: [first] }: Conversation): string | undefined {
  return first?.role === 'system' ? first.content : undefined;
}

/** Everything that was said goes, the system message stays. */
export function cleared(conversation: Conversation): Conversation {
  return startConversation(conversation.model, systemOf(conversation));
}

/** @param system undefined takes it away */
export function withSystem({ model, messages }: Conversation, system: string | undefined): Conversation {
  const said = messages.filter(({ role }) => role !== 'system');
  return { model, messages: system === undefined ? said : [{ role: 'system', content: system }, ...said] };
}

export function withMessage({ model, messages }: Conversation, message: ChatMessage): Conversation {
  return { model, messages: [...messages, message] };
}

export function formatConversation(conversation: Conversation): string {
  return `${JSON.stringify(conversation, null, 2)}\n`;
}

/** @returns undefined for a text that is no conversation */
export function findConversation(text: string): Conversation | undefined {
  try {
    return conversationSchema.parse(parseBoundedJson(text));
  } catch {
    return undefined;
  }
}
