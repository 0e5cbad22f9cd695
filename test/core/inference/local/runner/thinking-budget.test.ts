import { expect, test } from 'vitest';
import type { ModelCall } from '../../../../../core/inference/model-port.ts';
import { hasThinkingSwitch, thinkingBudget } from '../../../../../core/inference/local/runner/thinking-budget.ts';

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

test('only a template that knows the switch can be told not to think', () => {
  const withTemplate = (template: unknown) => ({ tokenizer: { chat_template: template } });
  expect(hasThinkingSwitch(withTemplate('{% if enable_thinking is false %}<think></think>{% endif %}'))).toBe(true);
  expect(hasThinkingSwitch(withTemplate('<|im_start|>assistant\n'))).toBe(false);
  for (const metadata of [undefined, {}, { tokenizer: null }, withTemplate(7)]) {
    expect(hasThinkingSwitch(metadata)).toBe(false);
  }
});
