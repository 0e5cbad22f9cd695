import fc from 'fast-check';
import { expect, test } from 'vitest';
import { outputText, type Item } from '../../../../gateway/wire/responses/items.ts';
import { withoutOldest } from '../../../../gateway/wire/responses/truncation.ts';
import { runs } from '../../../support/sampling.ts';

const message = (id: string, role: 'user' | 'assistant' | 'developer'): Item => ({
  type: 'message',
  id,
  status: 'completed',
  role,
  content: [outputText(id)],
});
const call = (name: string): Item => ({
  type: 'function_call',
  id: `fc_${name}`,
  status: 'completed',
  call_id: name,
  name: 'f',
  arguments: '{}',
});
const result = (name: string): Item => ({
  type: 'function_call_output',
  id: `fco_${name}`,
  status: 'completed',
  call_id: name,
  output: '',
});
const ids = (items: readonly Item[]) => items.map(({ id }) => id);

test('the oldest go first, but for instructions and what is asked', () => {
  const items = [message('d', 'developer'), message('1', 'user'), message('2', 'assistant'), message('3', 'user')];
  expect([0, 1, 2, 3, Infinity].map((oldest) => ids(withoutOldest(items, oldest)))).toEqual([
    ['d', '1', '2', '3'],
    ['d', '2', '3'],
    ['d', '3'],
    ['d', '3'],
    ['d', '3'],
  ]);
});

test('the result of a call goes with it, unless it is what is to be answered', () => {
  const items = [message('1', 'user'), call('a'), result('a'), call('b'), call('c'), result('b'), result('c')];
  expect(ids(withoutOldest(items, 2))).toEqual(['fc_b', 'fc_c', 'fco_b', 'fco_c']);
  expect(ids(withoutOldest(items, Infinity))).toEqual(['fc_b', 'fc_c', 'fco_b', 'fco_c']);
});

test('whatever is left can be said to a model: in order, each result after its call, the last item last', () => {
  const turn = fc.constantFrom('user', 'assistant', 'developer', 'call');
  const conversations = fc.array(turn, { minLength: 1, maxLength: 12 }).map((turns) =>
    turns.flatMap((kind, index) => {
      if (kind === 'call') return [call(String(index)), result(String(index))];
      return [message(String(index), kind)];
    }),
  );
  fc.assert(
    fc.property(conversations, fc.nat(15), (items, oldest) => {
      const kept = withoutOldest(items, oldest);
      expect(kept.at(-1)).toBe(items.at(-1));
      expect(kept).toEqual(items.filter((item) => kept.includes(item)));
      const seen = new Set<string>();
      for (const item of kept) {
        if (item.type === 'function_call') seen.add(item.call_id);
        if (item.type === 'function_call_output') expect(seen).toContain(item.call_id);
      }
    }),
    runs(1000),
  );
});
