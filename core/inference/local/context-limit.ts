/**
 * How long a conversation with a model can get, and how much of that is set aside for it. A context is loaded short and
 * grows with what is asked of it, unless the owner has set its length: keys and values of what a model was trained for
 * may take more memory than its weights. Pure.
 */
import { planLoad, START_CONTEXT_TOKENS, UNKNOWN_CONTEXT_TOKENS } from './load-plan.ts';
import type { MemoryFacts } from './memory-facts.ts';

export interface ContextLimit {
  readonly tokens: number;
  /** What stands in the way of more. */
  readonly by: LimitedBy;
}
/** `guest`: a caller for whom nothing that others use is loaded anew. */
export type LimitedBy = 'setting' | 'training' | 'memory' | 'guest';

interface LimitOptions {
  /** The setting `inference.contextTokens`. */
  readonly setting: number | undefined;
  readonly availableBytes: number;
}

/**
 * @param facts undefined of a file that says nothing of itself
 * @returns undefined where the model does not fit at all
 */
export function contextLimit(
  facts: MemoryFacts | undefined,
  { setting, availableBytes }: LimitOptions,
): ContextLimit | undefined {
  if (facts === undefined) return { tokens: setting ?? UNKNOWN_CONTEXT_TOKENS, by: 'setting' };
  const wanted = { contextTokens: setting, sequences: 1, isAutomatic: false };
  const plan = planLoad(facts, wanted, availableBytes);
  if (plan === undefined) return undefined;
  const isSet = setting !== undefined && setting < (facts.trainedContextTokens ?? Infinity);
  return { tokens: plan.contextTokens, by: plan.isReduced ? 'memory' : isSet ? 'setting' : 'training' };
}

/** The context to load for so many tokens: doubled as often as it takes, so that it seldom has to be loaded anew. */
export function contextFor(tokens: number): number {
  let context = START_CONTEXT_TOKENS;
  while (context < tokens) context *= 2;
  return context;
}
