/** How many tokens a model may spend on thinking before it answers. */
import { isRecord } from '../../../json.ts';
import { modelOptionsOf, type ModelCall } from '../../model-port.ts';

/** Tokens of thought for each effort that is less than a model's own measure. */
const EFFORT_TOKENS: Readonly<Partial<Record<NonNullable<ModelCall['reasoning']>, number>>> = {
  minimal: 512,
  low: 2048,
};

/** @returns 0 where it shall not think; infinity leaves it to the model */
export function thinkingBudget(call: Pick<ModelCall, 'reasoning' | 'providerOptions'>): number {
  const { reasoning = 'provider-default' } = call;
  if (reasoning === 'none') return 0;
  return modelOptionsOf(call).thinkingBudgetTokens ?? EFFORT_TOKENS[reasoning] ?? Infinity;
}

/**
 * Whether a model's own chat template can be told that it shall not think. An answer to a template that can't would begin
 * with an empty thought that the model never saw in training.
 * @param metadata the header of the model's file
 */
export function hasThinkingSwitch(metadata: unknown): boolean {
  const tokenizer = isRecord(metadata) ? metadata['tokenizer'] : undefined;
  const template = isRecord(tokenizer) ? tokenizer['chat_template'] : undefined;
  return typeof template === 'string' && template.includes('enable_thinking');
}
