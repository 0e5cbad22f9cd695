/** How lines become messages. */
import { expect, test } from 'vitest';
import { collectMessageLines } from '../../cli/message-lines.ts';

function messagesOf(...lines: readonly (string | { readonly pasted: string })[]): (string | undefined)[] {
  const collected = collectMessageLines();
  return lines.map((line) => (typeof line === 'string' ? collected.add(line) : collected.add(line.pasted, true)));
}

test.each([
  ['a line is a message, as it stands', ['  one '], ['  one ']],
  [
    'a backslash at its end goes on with it',
    ['one\\', 'two\\', '', 'next'],
    [undefined, undefined, 'one\ntwo\n', 'next'],
  ],
  [
    'a fence goes on until the next',
    ['"""', 'one\\', '', '"two"', '"""', 'next'],
    [undefined, undefined, undefined, undefined, 'one\\\n\n"two"', 'next'],
  ],
  ['a fence may open and close in one line', ['"""one"""'], ['one']],
  ['an empty fence is an empty message', ['"""', '"""'], [undefined, '']],
  ['a fence in the middle of a line is text', ['one """'], ['one """']],
  [
    'a paste goes on until a line is typed',
    [{ pasted: 'one' }, { pasted: 'two\\' }, 'three'],
    [undefined, undefined, 'one\ntwo\\\nthree'],
  ],
] as const)('%s', (_, lines, messages) => {
  expect(messagesOf(...lines)).toEqual(messages);
});

test('what has begun can be given up', () => {
  const lines = collectMessageLines();
  lines.add('"""one');
  expect(lines.hasBegun()).toBe(true);
  lines.clear();
  expect(lines.hasBegun()).toBe(false);
  expect(lines.add('two')).toBe('two');
});
