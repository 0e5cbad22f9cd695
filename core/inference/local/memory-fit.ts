/**
 * Whether a model will run in the memory there is, in the words that people are told, and as the engine room will judge
 * when it loads the model.
 */
import { contextLimit } from './context-limit.ts';
import { planLoad, START_CONTEXT_TOKENS } from './load-plan.ts';
import { estimateMemory, type MemoryEstimate } from './memory-estimate.ts';
import type { MemoryFacts } from './memory-facts.ts';

export interface MemoryFit {
  /** `tight`: with a smaller cache or a shorter context than wanted, or so that whatever else runs has little left. */
  readonly verdict: 'fits' | 'tight' | 'does not fit';
  /** Of the conversation, as it would be loaded at first; as wanted where nothing fits. */
  readonly contextTokens: number;
  /** How long it can get; undefined where nothing fits. */
  readonly limitTokens: number | undefined;
  /** For one conversation. */
  readonly estimate: MemoryEstimate;
  readonly availableBytes: number;
}

/** Beyond this share of what is available, whatever else runs begins to push the model out. */
const COMFORTABLE_SHARE = 0.85;

/** @param setting `inference.contextTokens`; a model that was trained for less gets less, and is not the tighter for it */
export function judgeFit(facts: MemoryFacts, setting: number | undefined, availableBytes: number): MemoryFit {
  const wanted = setting ?? START_CONTEXT_TOKENS;
  const plan = planLoad(facts, { contextTokens: wanted, sequences: 1, isAutomatic: false }, availableBytes);
  const contextTokens = plan?.contextTokens ?? Math.min(wanted, facts.trainedContextTokens ?? Infinity);
  const cacheType = plan?.cacheType ?? 'f16';
  const estimate = estimateMemory(facts, { contextTokens, sequences: 1, cacheType });
  const isSqueezed = plan?.isReduced === true || cacheType !== 'f16';
  const isTight = isSqueezed || estimate.totalBytes > availableBytes * COMFORTABLE_SHARE;
  return {
    verdict: plan === undefined ? 'does not fit' : isTight ? 'tight' : 'fits',
    contextTokens,
    limitTokens: contextLimit(facts, { setting, availableBytes })?.tokens,
    estimate,
    availableBytes,
  };
}
