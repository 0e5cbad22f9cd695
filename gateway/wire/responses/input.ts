/**
 * Open Responses, the input: what a client adds to a conversation, into the one form of items. Pure.
 *
 * Clients write one thing in several ways: a message with or without its `type`, content as a string or as parts, an
 * item in full or by its id. Items of tools that only another service could have run mean nothing to a model here; they
 * are left out, and named.
 */
import * as z from 'zod';
import type { Steps } from '../../../core/steps.ts';
import { RequestError } from '../../errors.ts';
import { MAX_NAMESPACE_LENGTH } from './tools.ts';
import { itemId, outputText, type ContentPart, type Item, type ReasoningItem } from './items.ts';
import { decodeOpaqueText } from './opaque-text.ts';

const inputTextPart = z.object({ type: z.literal(['input_text', 'text']), text: z.string() });
const outputTextPart = z.object({ type: z.literal('output_text'), text: z.string() });
const refusalPart = z.object({ type: z.literal('refusal'), refusal: z.string() });
const imagePart = z.object({
  type: z.literal('input_image'),
  image_url: z.string({ error: 'expected a URL or a data URL; files cannot be uploaded here' }),
  detail: z.enum(['low', 'high', 'auto', 'original']).nullish(),
});
const filePart = z
  .object({
    type: z.literal('input_file'),
    filename: z.string().nullish(),
    file_data: z.string().nullish(),
    file_url: z.string().nullish(),
  })
  .refine((part) => part.file_data != null || part.file_url != null, {
    error: 'expected file_data or file_url; files cannot be uploaded here',
  });

const textPartSchema = z.discriminatedUnion('type', [inputTextPart, outputTextPart]);
const userPartSchema = z.discriminatedUnion('type', [inputTextPart, outputTextPart, imagePart, filePart]);
const assistantPartSchema = z.discriminatedUnion('type', [inputTextPart, outputTextPart, refusalPart]);
type Part = z.output<typeof userPartSchema> | z.output<typeof assistantPartSchema>;

const ownId = z.string().min(1).nullish();
const messageFields = { type: z.literal('message'), id: ownId };

const messageSchema = z.discriminatedUnion(
  'role',
  [
    z.object({ ...messageFields, role: z.literal('user'), content: z.union([z.string(), z.array(userPartSchema)]) }),
    z.object({
      ...messageFields,
      role: z.literal(['system', 'developer']),
      content: z.union([z.string(), z.array(textPartSchema)]),
    }),
    z.object({
      ...messageFields,
      role: z.literal('assistant'),
      phase: z.enum(['commentary', 'final_answer']).nullish(),
      content: z.union([z.string(), z.array(assistantPartSchema)]),
    }),
  ],
  { error: 'expected the role "user", "assistant", "system" or "developer"' },
);

const functionCallSchema = z.object({
  type: z.literal('function_call'),
  id: ownId,
  call_id: z.string().min(1),
  name: z.string().min(1).max(MAX_NAMESPACE_LENGTH),
  namespace: z.string().max(MAX_NAMESPACE_LENGTH).nullish(),
  arguments: z.string(),
});

const functionCallOutputSchema = z.object({
  type: z.literal('function_call_output'),
  id: ownId,
  call_id: z.string().min(1),
  output: z.union([z.string(), z.array(userPartSchema)]),
});

const reasoningSchema = z.object({
  type: z.literal('reasoning'),
  id: ownId,
  summary: z.array(z.object({ type: z.literal('summary_text'), text: z.string() })).nullish(),
  content: z.array(z.object({ type: z.literal(['reasoning_text', 'text']), text: z.string() })).nullish(),
  encrypted_content: z.string().nullish(),
});

const compactionSchema = z.object({
  type: z.literal('compaction'),
  id: ownId,
  encrypted_content: z.string().refine((content) => decodeOpaqueText(content) !== undefined, {
    error: 'expected what /responses/compact made here',
  }),
});

const HOSTED_ITEM_TYPES = [
  'apply_patch_call',
  'apply_patch_call_output',
  'code_interpreter_call',
  'computer_call',
  'computer_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'file_search_call',
  'image_generation_call',
  'local_shell_call',
  'local_shell_call_output',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'mcp_list_tools',
  'shell_call',
  'shell_call_output',
  'tool_search_call',
  'tool_search_output',
  'web_search_call',
] as const;

const writtenOutSchemas = [
  messageSchema,
  functionCallSchema,
  functionCallOutputSchema,
  reasoningSchema,
  compactionSchema,
] as const;
type WrittenOut = z.output<(typeof writtenOutSchemas)[number]>;

export const inputItemSchema = z.preprocess(
  withType,
  z.discriminatedUnion(
    'type',
    [
      ...writtenOutSchemas,
      z.object({ type: z.literal('item_reference'), id: z.string().min(1) }),
      z.object({ type: z.literal(HOSTED_ITEM_TYPES) }),
    ],
    { error: 'expected the type of an item that can be used here' },
  ),
);
type InputItem = z.output<typeof inputItemSchema>;

/** `type` may be left out where it is plain: a message has a role, a reference nothing but an id. */
function withType(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || ('type' in value && value.type != null)) return value;
  if ('role' in value) return { ...value, type: 'message' };
  return 'id' in value ? { ...value, type: 'item_reference' } : value;
}

interface InputContext {
  /** Names the new items; see `itemId`. */
  readonly key: string;
  /** What was said before, oldest first. */
  readonly conversation: readonly Item[];
  /** Looks an item up that a client only named. */
  readonly findItem: (id: string) => Item | undefined;
}

interface ResolvedInput {
  readonly items: readonly Item[];
  /** Where in the request there was something that was left out. */
  readonly ignored: readonly string[];
}

/** @throws {RequestError} for an item that is not there, and for the output of a call that was never made */
export function* resolveInput(input: readonly InputItem[], context: InputContext): Steps<ResolvedInput> {
  const items: Item[] = [];
  const ignored: string[] = [];
  const known = new Set(context.conversation.map((item) => item.id));
  const calls = new Set(context.conversation.flatMap((item) => (item.type === 'function_call' ? [item.call_id] : [])));
  for (const [index, raw] of input.entries()) {
    yield;
    const at = `input[${index}]`;
    if (isHosted(raw)) {
      ignored.push(`input.${raw.type}`);
      continue;
    }
    // A reference to what is part of the conversation anyway says nothing new.
    if (raw.type === 'item_reference' && known.has(raw.id)) continue;
    const item =
      raw.type === 'item_reference'
        ? (context.findItem(raw.id) ?? itemNotFound(at))
        : keptItem(raw, itemId(raw.type, { key: context.key, number: items.length }));
    if (item.type === 'function_call') calls.add(item.call_id);
    if (item.type === 'function_call_output' && !calls.has(item.call_id)) callNotFound(at);
    known.add(item.id);
    items.push(item);
  }
  return { items, ignored };
}

const hostedItemTypes: ReadonlySet<string> = new Set(HOSTED_ITEM_TYPES);

type HostedItem = Extract<InputItem, { readonly type: (typeof HOSTED_ITEM_TYPES)[number] }>;

function isHosted(item: InputItem): item is HostedItem {
  return hostedItemTypes.has(item.type);
}

function itemNotFound(at: string): never {
  throw new RequestError(
    'not_found',
    `${at}.id: there is no item with this id; items can be referred to for 24 hours, and never those of responses that were not stored`,
    { param: `${at}.id` },
  );
}

function callNotFound(at: string): never {
  throw new RequestError('bad_request', `${at}.call_id: no function_call before it has this call_id`, {
    param: `${at}.call_id`,
  });
}

/** Reads items that were kept; they are in the form in which clients send them, too. */
export function parseKeptItems(value: unknown): Item[] {
  return z
    .array(z.discriminatedUnion('type', writtenOutSchemas))
    .parse(value)
    .map((item) => keptItem(item, ''));
}

/** @param newId what the item is called unless it has a name */
function keptItem(item: WrittenOut, newId: string): Item {
  const id = item.id ?? newId;
  switch (item.type) {
    case 'message': {
      const phase = item.role === 'assistant' && item.phase != null ? { phase: item.phase } : {};
      return { type: 'message', id, status: 'completed', role: item.role, ...phase, content: keptContent(item) };
    }
    case 'function_call': {
      const { call_id, name, namespace, arguments: text } = item;
      const group = namespace == null ? {} : { namespace };
      return { type: 'function_call', id, status: 'completed', call_id, name, ...group, arguments: text };
    }
    case 'function_call_output': {
      const output = typeof item.output === 'string' ? item.output : item.output.map((part) => keptPart(part, 'user'));
      return { type: 'function_call_output', id, status: 'completed', call_id: item.call_id, output };
    }
    case 'reasoning':
      return { type: 'reasoning', id, summary: item.summary ?? [], ...keptThoughts(item) };
    case 'compaction':
      return { type: 'compaction', id, encrypted_content: item.encrypted_content };
  }
}

/** Of two forms of one thing the one that everybody can read, and nothing of what nobody here can. */
function keptThoughts({
  content,
  encrypted_content: opaque,
}: z.output<typeof reasoningSchema>): Pick<ReasoningItem, 'content'> {
  if (content != null && content.length > 0) {
    return { content: content.map(({ text }) => ({ type: 'reasoning_text', text })) };
  }
  const text = opaque == null ? undefined : decodeOpaqueText(opaque);
  return text === undefined ? {} : { content: [{ type: 'reasoning_text', text }] };
}

function keptContent({ role, content }: z.output<typeof messageSchema>): ContentPart[] {
  const parts: readonly Part[] = typeof content === 'string' ? [{ type: 'input_text', text: content }] : content;
  return parts.map((part) => keptPart(part, role));
}

/** Text is called after who said it, whatever the client called it. */
function keptPart(part: Part, role: z.output<typeof messageSchema>['role']): ContentPart {
  switch (part.type) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return role === 'assistant' ? outputText(part.text) : { type: 'input_text', text: part.text };
    case 'input_image':
      return { type: 'input_image', image_url: part.image_url, detail: part.detail ?? 'auto' };
    case 'input_file': {
      const { filename, file_data, file_url } = part;
      return {
        type: 'input_file',
        ...(filename == null ? {} : { filename }),
        ...(file_data == null ? {} : { file_data }),
        ...(file_url == null ? {} : { file_url }),
      };
    }
    case 'refusal':
      return part;
  }
}
