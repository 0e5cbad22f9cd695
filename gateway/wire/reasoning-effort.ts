/** OpenAI's scale of how much a model shall think before it answers, in terms of the model port. */
import type { ModelOptions } from '../../core/inference/model-port.ts';

export const REASONING_EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const;
export type ReasoningEffort = (typeof REASONING_EFFORTS)[number];

/** Tokens of thought for each effort; above `low` a model decides for itself. */
const THINKING_BUDGET_TOKENS: Readonly<Partial<Record<ReasoningEffort, number>>> = { minimal: 512, low: 2048 };

export function effortOptions(effort: ReasoningEffort): Pick<ModelOptions, 'thinking' | 'thinkingBudgetTokens'> {
  const thinkingBudgetTokens = THINKING_BUDGET_TOKENS[effort];
  return {
    ...(effort === 'none' ? { thinking: false } : {}),
    ...(thinkingBudgetTokens === undefined ? {} : { thinkingBudgetTokens }),
  };
}
