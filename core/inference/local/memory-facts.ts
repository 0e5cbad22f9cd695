/**
 * What a model's header says about the memory that it takes: sizes for each token, each sequence and each batch, from
 * which `memory-estimate.ts` makes an estimate. The keys are GGUF's own, below the architecture's name:
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 *
 * The cache of keys and values is what counts. A layer holds, for each token, `head_count_kv` keys of `key_length`
 * numbers and as many values: with grouped queries that is a fraction of what the number of heads would suggest.
 */
import * as z from 'zod';

export const memoryFactsSchema = z.strictObject({
  /** All files of the model together. */
  weightBytes: z.number().nonnegative(),
  /** Keys and values of one token, over all layers that look back over the whole context. */
  cacheBytesPerToken: z.number().nonnegative(),
  /** The same over those layers that look back over `windowTokens` only. */
  windowCacheBytesPerToken: z.number().nonnegative(),
  windowTokens: z.number().nonnegative(),
  /** Keys and values can be kept in blocks of 32 numbers that share a scale (`q8_0`). */
  isCacheQuantizable: z.boolean(),
  /** What recurrent layers hold of a sequence, however long it is. */
  stateBytesPerSequence: z.number().nonnegative(),
  /** Scratch for each token of a batch at the model's output: a number for each word of the vocabulary. */
  outputBytesPerBatchToken: z.number().nonnegative(),
  /** Scratch for each token of a batch within a layer. */
  layerBytesPerBatchToken: z.number().nonnegative(),
  vocabularySize: z.number().nonnegative(),
  /** The engine gives a sequence no more tokens than this. */
  trainedContextTokens: z.number().positive().optional(),
});
export type MemoryFacts = Readonly<z.output<typeof memoryFactsSchema>>;

/** The engine keeps keys and values as 16-bit floats, and everything that it computes with as 32-bit ones. */
const CACHE_ELEMENT_BYTES = 2;
const FLOAT_BYTES = 4;

/**
 * Every how many layers one looks back over the whole context, for families whose files do not say
 * (`set_swa_pattern` in llama.cpp's `llama-model.cpp`). Any other family's layers are taken to do so all.
 */
const WINDOW_PATTERNS: ReadonlyMap<string, number> = new Map([
  ['cohere2', 4],
  ['exaone4', 4],
  ['gemma2', 2],
  ['gemma3', 6],
  ['gemma3n', 5],
  ['gpt-oss', 2],
  ['olmo2', 4],
]);

/** @param metadata the header's keys, lists included; what is missing or nonsense counts as nothing */
export function memoryFacts(metadata: Readonly<Record<string, unknown>>, weightBytes: number): MemoryFacts {
  const header = headerOf(metadata);
  const embedding = header.number('embedding_length');
  const experts = header.number('expert_used_count');
  const feedForward = Math.max(
    header.largest('feed_forward_length'),
    experts * header.number('expert_feed_forward_length'),
  );
  const trained = header.number('context_length');
  return {
    weightBytes,
    ...cacheFacts(header),
    windowTokens: header.number('attention.sliding_window'),
    isCacheQuantizable: isCacheQuantizable(header),
    // Both sums are what the engine reserves for models of the Llama and Qwen families, to the byte.
    outputBytesPerBatchToken: FLOAT_BYTES * (vocabularySize(header) + 2 * embedding),
    layerBytesPerBatchToken: FLOAT_BYTES * (3 * feedForward + 4 * embedding),
    vocabularySize: vocabularySize(header),
    ...(trained > 0 ? { trainedContextTokens: trained } : {}),
  };
}

type CacheFacts = Pick<MemoryFacts, 'cacheBytesPerToken' | 'windowCacheBytesPerToken' | 'stateBytesPerSequence'>;

function cacheFacts(header: Header): CacheFacts {
  const facts = { cacheBytesPerToken: 0, windowCacheBytesPerToken: 0, stateBytesPerSequence: 0 };
  // A model that only reads, such as BERT, goes over its text once and keeps nothing.
  if (header.value('attention.causal') === false) return facts;
  const layers = Math.min(header.number('block_count'), MAX_LAYERS);
  // The last layers of some families use the cache of earlier ones.
  const ownCaches = layers - header.number('attention.shared_kv_layers');
  for (let layer = 0; layer < layers; layer += 1) {
    if (isRecurrent(header, layer)) facts.stateBytesPerSequence += recurrentStateBytes(header);
    if (!hasAttention(header, layer) || layer >= ownCaches) continue;
    const isWindowed = looksThroughWindow(header, layer);
    facts[isWindowed ? 'windowCacheBytesPerToken' : 'cacheBytesPerToken'] += layerCacheBytes(header, layer, isWindowed);
  }
  return facts;
}

/** No model has nearly as many; a damaged file may claim any number. */
const MAX_LAYERS = 10_000;

function layerCacheBytes(header: Header, layer: number, isWindowed: boolean): number {
  const headLength = header.number('embedding_length') / Math.max(1, header.largest('attention.head_count'));
  const length = (kind: 'key' | 'value'): number =>
    (isWindowed ? header.number(`attention.${kind}_length_swa`) : 0) ||
    header.number(`attention.${kind}_length`) ||
    headLength;
  // Latent attention (DeepSeek): the values are worked out from the keys.
  const valueLength = header.number('attention.key_length_mla') > 0 ? 0 : length('value');
  return CACHE_ELEMENT_BYTES * keyHeads(header, layer) * (length('key') + valueLength);
}

/** `head_count_kv` is one number, or one for each layer; without it every head has its own keys. */
function keyHeads(header: Header, layer: number): number {
  return header.ofLayer('attention.head_count_kv', layer) ?? header.ofLayer('attention.head_count', layer) ?? 0;
}

function looksThroughWindow(header: Header, layer: number): boolean {
  if (header.number('attention.sliding_window') === 0) return false;
  const pattern = header.value('attention.sliding_window_pattern');
  if (Array.isArray(pattern)) return Boolean(pattern[layer]);
  const every = typeof pattern === 'number' ? pattern : (WINDOW_PATTERNS.get(header.architecture) ?? 1);
  return every > 1 && layer % every < every - 1;
}

function isRecurrent(header: Header, layer: number): boolean {
  if (recurrentStateBytes(header) === 0) return false;
  return header.architecture === 'falcon-h1' || !hasAttention(header, layer);
}

function hasAttention(header: Header, layer: number): boolean {
  const every = header.number('full_attention_interval');
  if (every > 0) return (layer + 1) % every === 0;
  return keyHeads(header, layer) > 0;
}

/** One layer's state of one sequence: Mamba's, RWKV's or a short convolution's, as `n_embd_r` and `n_embd_s` there. */
function recurrentStateBytes(header: Header): number {
  const embedding = header.number('embedding_length');
  const rwkvHead = header.number('wkv.head_size');
  if (rwkvHead > 0) return FLOAT_BYTES * embedding * (header.number('token_shift_count') + rwkvHead);
  const shortConvolution = header.number('shortconv.l_cache');
  if (shortConvolution > 0) return FLOAT_BYTES * embedding * (shortConvolution - 1);
  const inner = header.number('ssm.inner_size');
  const state = header.number('ssm.state_size');
  const convolved = inner + 2 * header.number('ssm.group_count') * state;
  return FLOAT_BYTES * (Math.max(0, header.number('ssm.conv_kernel') - 1) * convolved + state * inner);
}

function vocabularySize(header: Header): number {
  return header.number('vocab_size') || header.tokenCount;
}

/** `ggml_blck_size(GGML_TYPE_Q8_0)`: a key or value that is no multiple of it can't be cut into blocks. */
const QUANTIZED_BLOCK = 32;

/** Latent attention has a cache of its own kind, which the engine does not quantize in every case. */
function isCacheQuantizable(header: Header): boolean {
  const headLength = header.number('embedding_length') / Math.max(1, header.largest('attention.head_count'));
  const lengths = ['key_length', 'value_length', 'key_length_swa', 'value_length_swa'].map(
    (name) => header.number(`attention.${name}`) || headLength,
  );
  const isLatent = header.number('attention.key_length_mla') > 0;
  return headLength > 0 && !isLatent && lengths.every((length) => length % QUANTIZED_BLOCK === 0);
}

type Header = ReturnType<typeof headerOf>;

/** The keys below the architecture's own name. */
function headerOf(metadata: Readonly<Record<string, unknown>>) {
  const named = metadata['general.architecture'];
  const architecture = typeof named === 'string' ? named : '';
  const tokens = metadata['tokenizer.ggml.tokens'];
  const value = (key: string): unknown => metadata[`${architecture}.${key}`];
  return {
    architecture,
    tokenCount: Array.isArray(tokens) ? tokens.length : 0,
    value,
    number: (key: string): number => positive(value(key)) ?? 0,
    /** Of a key that has one value for each layer, or one for all. */
    largest: (key: string): number => {
      const found = value(key);
      return Array.isArray(found) ? Math.max(0, ...found.map((one) => positive(one) ?? 0)) : (positive(found) ?? 0);
    },
    ofLayer: (key: string, layer: number): number | undefined => {
      const found = value(key);
      return positive(Array.isArray(found) ? found[layer] : found);
    },
  };
}

/** Undefined for what is no number; a number that can't be counted with is none. */
function positive(value: unknown): number | undefined {
  const number = typeof value === 'bigint' ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}
