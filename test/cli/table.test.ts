/** Tables. */
import { expect, test } from 'vitest';
import { table } from '../../cli/table.ts';

const plain = (lines: ReturnType<typeof table>): string[] =>
  lines.map((line) =>
    typeof line === 'string' ? line : line.map((part) => (typeof part === 'string' ? part : part.text)).join(''),
  );

test('columns are as wide as what stands in them, and no line ends with blanks', () => {
  const rows = [
    ['1', { text: 'active', style: 'good' as const }, 'laptop'],
    ['22', 'gone', ''],
    ['3', 'e\u0301t\u00e9 \u{1f44d}\u{1f3fd}', 'x'],
  ];
  expect(plain(table(['ID', 'STATUS', 'LABEL'], rows))).toEqual([
    'ID  STATUS  LABEL',
    '1   active  laptop',
    '22  gone',
    '3   e\u0301t\u00e9 \u{1f44d}\u{1f3fd}   x',
  ]);
});

test('of no rows there are the heads', () => {
  expect(plain(table(['ID', 'STATUS'], []))).toEqual(['ID  STATUS']);
});

test('what would command a terminal does not', () => {
  const lines = table(['NAME'], [['\u001b[31mred'], [{ text: 'a\nb', style: 'heading' }]]);
  expect(JSON.stringify(lines)).not.toMatch(/\\u001b|\\n/);
});
