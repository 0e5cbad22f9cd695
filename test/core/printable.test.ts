/** Names that somebody else chose, as the owner reads them. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { printable, quoted } from '../../core/printable.ts';
import { runs } from '../support/sampling.ts';

test.each([
  ['phone', '"phone"'],
  ['Käthes 电话', '"Käthes 电话"'],
  ['x" (linux), from 10.0.0.1, for "', '"x\\" (linux), from 10.0.0.1, for \\""'],
  ['a\\', '"a\\\\"'],
  ['a\u0007\u001b[2J', '"a\\u{7}\\u{1b}[2J"'],
  ['a\nb\r\u2028', '"a\\u{a}b\\u{d}\\u{2028}"'],
  ['abc\u202egpj', '"abc\\u{202e}gpj"'],
  ['pho\u200bne\ufeff\u00ad', '"pho\\u{200b}ne\\u{feff}\\u{ad}"'],
  ['two\u00a0words\u3000', '"two\\u{a0}words\\u{3000}"'],
  ['\u3164\u{e0041}', '"\\u{3164}\\u{e0041}"'],
  ['x'.repeat(65), `"${'x'.repeat(64)}…"`],
])('%j is shown in quotation marks, and all of it is seen', (name, shown) => expect(quoted(name)).toBe(shown));

test('no name leaves its quotation marks, nor holds what cannot be seen', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      expect(quoted(name)).toMatch(/^"(?:[^"\\]|\\["\\]|\\u\{[0-9a-f]+\})*"$/u);
      expect(quoted(name)).not.toMatch(/(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u);
      expect(printable(name)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
    }),
    runs(5000),
  );
});
