/**
 * How much memory a model will take, before it is loaded: weights, the cache of keys and values, the engine's scratch
 * and the process around it. Pure. The engine itself refuses only what the system can't even promise, which on Linux
 * is next to nothing; what does not fit then ends with the kernel killing some process.
 */
import type { MemoryFacts } from './memory-facts.ts';

/** How keys and values are kept: as 16-bit floats, or in llama.cpp's `q8_0`, which takes about half of that. */
export type CacheType = 'f16' | 'q8_0';

export interface MemoryNeed {
  /** Tokens that each sequence may hold; a model's training length caps it. */
  readonly contextTokens: number;
  /** Conversations at once, each with a context of its own. */
  readonly sequences: number;
  /** Default `f16`. */
  readonly cacheType?: CacheType;
}

/** Bytes. */
export interface MemoryEstimate {
  /** Mapped from the file: the system may drop and read them again, but not while the model is answering. */
  readonly weightBytes: number;
  readonly cacheBytes: number;
  readonly scratchBytes: number;
  readonly processBytes: number;
  readonly totalBytes: number;
}

/** The engine's defaults: tokens that it evaluates at once, and the step that it rounds a context up to. */
const BATCH_TOKENS = 512;
const CONTEXT_STEP = 256;

/** A runner but for its model: Node and the engine's library. Measured. */
const PROCESS_BYTES = 128 * 1024 * 1024;

/** The engine and its JavaScript side both keep the text of every token, and how tokens merge. Measured. */
const BYTES_PER_VOCABULARY_ENTRY = 1000;

/** What each token that a sequence may look back to adds to the mask of one token in a batch. */
const MASK_ELEMENT_BYTES = 2;

/** `block_q8_0` in ggml: 32 numbers of one byte and their scale, which as floats would be 64 bytes. */
const CACHE_SHARES: Readonly<Record<CacheType, number>> = { f16: 1, q8_0: 34 / 64 };

/** Never less for a longer context or for more sequences. */
export function estimateMemory(
  facts: MemoryFacts,
  { contextTokens, sequences, cacheType = 'f16' }: MemoryNeed,
): MemoryEstimate {
  const context = roundUp(Math.min(contextTokens, facts.trainedContextTokens ?? Infinity));
  const cells = context * sequences;
  const windowCells = Math.min(cells, roundUp(sequences * facts.windowTokens + BATCH_TOKENS + 1));
  const cacheBytes =
    (facts.cacheBytesPerToken * cells + facts.windowCacheBytesPerToken * windowCells) * CACHE_SHARES[cacheType] +
    facts.stateBytesPerSequence * sequences;
  const inLayer = facts.layerBytesPerBatchToken + MASK_ELEMENT_BYTES * context;
  const scratchBytes = BATCH_TOKENS * Math.max(facts.outputBytesPerBatchToken, inLayer);
  const processBytes = PROCESS_BYTES + BYTES_PER_VOCABULARY_ENTRY * facts.vocabularySize;
  const { weightBytes } = facts;
  const totalBytes = weightBytes + cacheBytes + scratchBytes + processBytes;
  return { weightBytes, cacheBytes, scratchBytes, processBytes, totalBytes };
}

function roundUp(tokens: number): number {
  return Math.ceil(tokens / CONTEXT_STEP) * CONTEXT_STEP;
}
