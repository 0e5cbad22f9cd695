import { expect, test } from 'vitest';
import type { Terminal } from '../../cli/command.ts';
import { confirm } from '../../cli/confirm.ts';
import { silentTerminal } from '../support/silent-terminal.ts';

function terminal(answer?: string): Terminal & { readonly asked: string[] } {
  const asked: string[] = [];
  const ask = async (question: string): Promise<string> => {
    asked.push(question);
    return answer ?? '';
  };
  return { ...silentTerminal, ask: answer === undefined ? undefined : ask, asked };
}
const question = 'Remove it?';

test.each([
  ['y', true],
  ['YES ', true],
  ['', false],
  ['n', false],
  ['yeah', false],
])('%j means %s', async (answer, expected) => {
  const one = terminal(answer);
  expect(await confirm({ question, isSure: false }, one)).toBe(expected);
  expect(one.asked).toEqual(['Remove it? [y/N] ']);
});

test('who is sure is not asked; where nobody can be asked, the way is named', async () => {
  const one = terminal('n');
  expect(await confirm({ question, isSure: true }, one)).toBe(true);
  expect(one.asked).toEqual([]);
  await expect(confirm({ question, isSure: false }, terminal())).rejects.toThrow(/Remove it\?.*--yes/);
});
