/**
 * Open Responses, the items: what a conversation is made of, in the one form in which we keep and return them.
 * Schema: https://www.openresponses.org/specification (`ItemField`).
 */

type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

export interface OutputText {
  readonly type: 'output_text';
  readonly text: string;
  readonly annotations: readonly never[];
  readonly logprobs: readonly never[];
}

export type ContentPart =
  | { readonly type: 'input_text'; readonly text: string }
  | { readonly type: 'input_image'; readonly image_url: string; readonly detail: string }
  | { readonly type: 'input_file'; readonly filename?: string; readonly file_data?: string; readonly file_url?: string }
  | { readonly type: 'refusal'; readonly refusal: string }
  | OutputText;

export interface MessageItem {
  readonly type: 'message';
  readonly id: string;
  readonly status: ItemStatus;
  readonly role: 'user' | 'assistant' | 'system' | 'developer';
  /** Of what an assistant said: on the way to its answer, or the answer. Kept as its client sent it. */
  readonly phase?: 'commentary' | 'final_answer';
  readonly content: readonly ContentPart[];
}

export interface FunctionCallItem {
  readonly type: 'function_call';
  readonly id: string;
  readonly status: ItemStatus;
  readonly call_id: string;
  readonly name: string;
  /** OpenAI's own extension: the group of tools that the function belongs to. */
  readonly namespace?: string;
  /** JSON text, as the model wrote it. */
  readonly arguments: string;
}

interface FunctionCallOutputItem {
  readonly type: 'function_call_output';
  readonly id: string;
  readonly status: ItemStatus;
  readonly call_id: string;
  readonly output: string | readonly ContentPart[];
}

export interface ReasoningItem {
  readonly type: 'reasoning';
  readonly id: string;
  readonly summary: readonly { readonly type: 'summary_text'; readonly text: string }[];
  readonly content?: readonly { readonly type: 'reasoning_text'; readonly text: string }[];
  /** The thoughts once more, where the request asked for them (`include`): see `opaque-text.ts`. */
  readonly encrypted_content?: string;
}

/** Stands for what was said before a conversation was compacted. */
export interface CompactionItem {
  readonly type: 'compaction';
  readonly id: string;
  /** The summary: see `opaque-text.ts`. */
  readonly encrypted_content: string;
}

/** Of these and nothing else a conversation consists. */
export type Item = MessageItem | FunctionCallItem | FunctionCallOutputItem | ReasoningItem | CompactionItem;

export function outputText(text: string): OutputText {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

const ID_PREFIXES: Readonly<Record<Item['type'], string>> = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fco',
  reasoning: 'rs',
  compaction: 'cmp',
};

/** How a response and all its items are named: `resp_<key>`, and for each item `<prefix>_<key><number>`. */
export interface ItemNumber {
  /** 24 hexadecimal digits. */
  readonly key: string;
  /** Counts a response's items, those of the input first. */
  readonly number: number;
}

export function itemId(type: Item['type'], { key, number }: ItemNumber): string {
  return `${ID_PREFIXES[type]}_${key}${number.toString(16).padStart(4, '0')}`;
}

export function responseId(key: string): string {
  return `resp_${key}`;
}

/** The response that an item is part of, told from the item's id; `undefined` when the id is none of ours. */
export function responseIdOfItem(id: string): string | undefined {
  const key = /^[a-z]{1,8}_([0-9a-f]{24})[0-9a-f]{4,8}$/.exec(id)?.[1];
  return key === undefined ? undefined : responseId(key);
}
