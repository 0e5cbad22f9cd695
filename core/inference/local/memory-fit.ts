/**
 * Whether a model will run in the memory there is, in the words that people are told, and as the engine room will judge
 * when it loads the model.
 */
import { planLoad } from './load-plan.ts';
import { estimateMemory, type MemoryEstimate } from './memory-estimate.ts';
import type { MemoryFacts } from './memory-facts.ts';

export interface MemoryFit {
  /** `tight`: with a shorter context than wanted, or so that whatever else runs has little left. */
  readonly verdict: 'fits' | 'tight' | 'does not fit';
  /** Of the conversation, as it would be loaded; as wanted where nothing fits. */
  readonly contextTokens: number;
  /** For one conversation. */
  readonly estimate: MemoryEstimate;
  readonly availableBytes: number;
}

/** Beyond this share of what is available, whatever else runs begins to push the model out. */
const COMFORTABLE_SHARE = 0.85;

/** @param wanted.contextTokens the setting; a model that was trained for less gets less, and is not the tighter for it */
export function judgeFit(
  facts: MemoryFacts,
  wanted: { readonly contextTokens: number },
  availableBytes: number,
): MemoryFit {
  const plan = planLoad(facts, { ...wanted, sequences: 1, isAutomatic: false }, availableBytes);
  const contextTokens = plan?.contextTokens ?? Math.min(wanted.contextTokens, facts.trainedContextTokens ?? Infinity);
  const estimate = estimateMemory(facts, { contextTokens, sequences: 1 });
  const isTight = plan?.isReduced === true || estimate.totalBytes > availableBytes * COMFORTABLE_SHARE;
  return {
    verdict: plan === undefined ? 'does not fit' : isTight ? 'tight' : 'fits',
    contextTokens,
    estimate,
    availableBytes,
  };
}
