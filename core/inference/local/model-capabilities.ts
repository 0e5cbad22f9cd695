/**
 * What a model was made for, as far as its file shows. Not vision: the engine takes no pictures, whatever the file says.
 */
export type ModelCapability = 'completion' | 'tools' | 'thinking' | 'embedding';

interface ShownByFile {
  /** False for a model that only makes embeddings. */
  readonly isGenerative: boolean;
  readonly chatTemplate?: string | undefined;
}

/** A template that lays out tools was written for a model that knows them. */
const TOOLS = /\btools\b|\btool_calls\b/;

/** The marks by which families set their thoughts apart, and the variables by which templates turn them on. */
const THINKING =
  /<\/?think>|\[THINK\]|<seed:think>|<\|channel\|?>\s*(?:analysis|thought)|\b(?:enable_thinking|reasoning_content|reasoning_effort|thinking_budget)\b/;

export function modelCapabilities({ isGenerative, chatTemplate = '' }: ShownByFile): readonly ModelCapability[] {
  if (!isGenerative) return ['embedding'];
  return [
    'completion',
    ...(TOOLS.test(chatTemplate) ? (['tools'] as const) : []),
    ...(THINKING.test(chatTemplate) ? (['thinking'] as const) : []),
  ];
}

/** Families that read a text and never go on with it. */
const READING_FAMILIES: ReadonlySet<string> = new Set([
  'bert',
  'eurobert',
  'gemma-embedding',
  'jina-bert-v2',
  'jina-bert-v3',
  'modern-bert',
  'neo-bert',
  'nomic-bert',
  'nomic-bert-moe',
  't5encoder',
]);

/** llama.cpp's `LLAMA_POOLING_TYPE_NONE`. */
const NO_POOLING = 0;

/**
 * Whether a model makes text. One that pools its outputs into a single vector does not, nor one that looks at a text's
 * end while it reads its beginning.
 */
export function generatesText(architecture: string, metadata: Readonly<Record<string, unknown>>): boolean {
  if (READING_FAMILIES.has(architecture) || metadata[`${architecture}.attention.causal`] === false) return false;
  const pooling = metadata[`${architecture}.pooling_type`];
  return pooling === undefined || pooling === NO_POOLING;
}
