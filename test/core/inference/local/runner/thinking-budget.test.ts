import { expect, test } from 'vitest';
import type { ModelCall } from '../../../../../core/inference/model-port.ts';
import { thinkingBudget } from '../../../../../core/inference/local/runner/thinking-budget.ts';

test.each<[Pick<ModelCall, 'reasoning'>, number | undefined, number]>([
  [{}, undefined, Infinity],
  [{ reasoning: 'provider-default' }, undefined, Infinity],
  [{ reasoning: 'minimal' }, undefined, 512],
  [{ reasoning: 'low' }, undefined, 2048],
  [{ reasoning: 'max' }, undefined, Infinity],
  [{ reasoning: 'low' }, 1024, 1024],
  [{ reasoning: 'none' }, 1024, 0],
])('%j with a budget of %j gives %d tokens', (call, thinkingBudgetTokens, tokens) => {
  const postern = thinkingBudgetTokens === undefined ? {} : { thinkingBudgetTokens };
  expect(thinkingBudget({ ...call, providerOptions: { postern } })).toBe(tokens);
});
