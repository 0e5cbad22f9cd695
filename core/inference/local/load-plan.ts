/**
 * How a model is loaded into the memory there is: with the context and the sequences that are wanted where they fit,
 * else with fewer sequences, else with a cache of half the size, else with a shorter context, else not at all. Pure.
 */
import { estimateMemory, type CacheType } from './memory-estimate.ts';
import type { MemoryFacts } from './memory-facts.ts';

export interface WantedLoad {
  /** Of each sequence; undefined: as long as the model was trained for. */
  readonly contextTokens: number | undefined;
  readonly sequences: number;
  /** The number of sequences is ours: those beyond the first are a convenience that may not take much. */
  readonly isAutomatic: boolean;
}

export interface LoadPlan {
  readonly contextTokens: number;
  readonly sequences: number;
  readonly cacheType: CacheType;
  readonly memoryBytes: number;
  /** The context is shorter than wanted. */
  readonly isReduced: boolean;
}

/** A shorter context holds no conversation that is worth a load. */
const MIN_CONTEXT_TOKENS = 1024;

/** Set aside for a conversation at first, where the owner has set nothing; it grows from there. */
export const START_CONTEXT_TOKENS = 8192;

/** Of a model whose file does not say what it was trained for. */
export const UNKNOWN_CONTEXT_TOKENS = 8192;

/** Left to everything else that runs. */
const RESERVED_BYTES = 256 * 1024 * 1024;

/** What automatic sequences beyond the first may take of the available memory. */
const CONVENIENCE_SHARE = 0.25;

/** @returns undefined if not even one sequence with a short context fits */
export function planLoad(facts: MemoryFacts, wanted: WantedLoad, availableBytes: number): LoadPlan | undefined {
  const trained =
    facts.trainedContextTokens ?? (wanted.contextTokens === undefined ? UNKNOWN_CONTEXT_TOKENS : Infinity);
  const longest = Math.min(wanted.contextTokens ?? Infinity, trained);
  const cacheTypes: readonly CacheType[] = facts.isCacheQuantizable ? ['f16', 'q8_0'] : ['f16'];
  for (let contextTokens = longest; ; contextTokens = Math.max(MIN_CONTEXT_TOKENS, Math.floor(contextTokens / 2))) {
    for (const cacheType of cacheTypes) {
      const fit = planSequences(facts, { ...wanted, contextTokens, cacheType }, availableBytes);
      if (fit !== undefined) return { contextTokens, cacheType, ...fit, isReduced: contextTokens < longest };
    }
    if (contextTokens <= MIN_CONTEXT_TOKENS) return undefined;
  }
}

interface WantedSequences extends WantedLoad {
  readonly contextTokens: number;
  readonly cacheType: CacheType;
}

/** As many sequences as there is room for. @returns undefined where not even one fits */
function planSequences(
  facts: MemoryFacts,
  { contextTokens, cacheType, isAutomatic, ...wanted }: WantedSequences,
  availableBytes: number,
): Pick<LoadPlan, 'sequences' | 'memoryBytes'> | undefined {
  const room = availableBytes - RESERVED_BYTES;
  const bytes = (sequences: number): number =>
    estimateMemory(facts, { contextTokens, sequences, cacheType }).totalBytes;
  if (bytes(1) > room) return undefined;
  const most = isAutomatic ? Math.min(room, bytes(1) + availableBytes * CONVENIENCE_SHARE) : room;
  let { sequences } = wanted;
  while (sequences > 1 && bytes(sequences) > most) sequences -= 1;
  return { sequences, memoryBytes: bytes(sequences) };
}
