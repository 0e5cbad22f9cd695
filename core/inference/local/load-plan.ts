/**
 * How a model is loaded into the memory there is: with the context and the sequences that the owner wants where they
 * fit, else with fewer sequences, else with a shorter context, else not at all. Pure.
 */
import { estimateMemory } from './memory-estimate.ts';
import type { MemoryFacts } from './memory-facts.ts';

export interface WantedLoad {
  /** Of each sequence. */
  readonly contextTokens: number;
  readonly sequences: number;
  /** The number of sequences is ours: those beyond the first are a convenience that may not take much. */
  readonly isAutomatic: boolean;
}

export interface LoadPlan {
  readonly contextTokens: number;
  readonly sequences: number;
  readonly memoryBytes: number;
  /** The context is shorter than wanted. */
  readonly isReduced: boolean;
}

/** A shorter context holds no conversation that is worth a load. */
const MIN_CONTEXT_TOKENS = 1024;

/** Left to everything else that runs. */
const RESERVED_BYTES = 256 * 1024 * 1024;

/** What automatic sequences beyond the first may take of the available memory. */
const CONVENIENCE_SHARE = 0.25;

/** @returns undefined if not even one sequence with a short context fits */
export function planLoad(facts: MemoryFacts, wanted: WantedLoad, availableBytes: number): LoadPlan | undefined {
  const room = availableBytes - RESERVED_BYTES;
  const longest = Math.min(wanted.contextTokens, facts.trainedContextTokens ?? Infinity);
  for (let contextTokens = longest; ; contextTokens = Math.max(MIN_CONTEXT_TOKENS, Math.floor(contextTokens / 2))) {
    const bytes = (sequences: number): number => estimateMemory(facts, { contextTokens, sequences }).totalBytes;
    if (bytes(1) <= room) {
      const most = wanted.isAutomatic ? Math.min(room, bytes(1) + availableBytes * CONVENIENCE_SHARE) : room;
      let { sequences } = wanted;
      while (sequences > 1 && bytes(sequences) > most) sequences -= 1;
      return { contextTokens, sequences, memoryBytes: bytes(sequences), isReduced: contextTokens < longest };
    }
    if (contextTokens <= MIN_CONTEXT_TOKENS) return undefined;
  }
}
