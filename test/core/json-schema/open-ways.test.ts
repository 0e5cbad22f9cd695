/** What a grammar costs the engine at each token: by how many ways are open at once. */
import { describe, expect, test } from 'vitest';
import { countOpenWays, either, repeat, rule, sequence, set, text } from '../../../core/json-schema/grammar.ts';
import { anyOfTexts } from '../../../core/json-schema/listed-texts.ts';
import { schemaGrammar } from '../../../core/json-schema/schema-grammar.ts';

const many = <Value>(count: number, name: (index: number) => Value) =>
  Array.from({ length: count }, (_, at) => name(at));
const ofList = (values: readonly string[]) => schemaGrammar({ type: 'array', minItems: 50, items: { enum: values } });

describe('ways that are open', () => {
  const digit = set([[48, 57]]);
  test.each([
    ['a text', text('a'), 1],
    ['one of two', either(text('a'), digit), 2],
    ['what may be left out, and what follows', sequence(repeat(digit, 0, 1), text('a')), 2],
    ['what must come first', sequence(digit, either(text('a'), text('b'))), 2],
    ['a rule that may be empty, and what follows', sequence(rule('other'), text('x')), 4],
  ])('%s', (_, root, count) => {
    const other = either(text(''), text('b'), text('c'));
    const used = root.type === 'sequence' && root.of.some(({ type }) => type === 'rule');
    expect(countOpenWays(new Map([['root', root], ...(used ? [['other', other] as const] : [])]))).toBe(count);
  });

  test('a rule that begins with itself is counted to its end', () => {
    expect(countOpenWays(new Map([['root', either(sequence(rule('root'), text('a')), text('b'))]]))).toBe(1);
  });
});

describe('a long list of values', () => {
  test('branches only where they differ', () => {
    const held = ofList(many(9000, (at) => `v${at}`));
    expect(held.isPossible).toBe(true);
    if (held.isPossible) expect(countOpenWays(held.grammar)).toBeLessThan(30);
  });

  test('as alternatives, too', () => {
    const held = schemaGrammar({ anyOf: many(1500, (at) => at).map((value) => ({ const: `word-${value}` })) });
    expect(held.isPossible).toBe(true);
    if (held.isPossible) expect(countOpenWays(held.grammar)).toBeLessThan(30);
  });

  test('that differ in their first character, all of them, is refused as too large', () => {
    const values = many(1000, (at) => String.fromCodePoint(0x4e00 + at));
    expect(ofList(values)).toEqual({ isPossible: false, reason: 'too-large' });
  });

  test('that begin with one another is no deeper than a hundred', () => {
    expect(ofList(many(300, (at) => 'a'.repeat(at + 1)))).toMatchObject({ isPossible: true });
  });

  test('is all of them, and no other', () => {
    const values = ['a', 'ab', 'abc', 'b', 'ba', '', 'a"', '😀', '😁x'];
    const written = (production: ReturnType<typeof text>): readonly string[] => {
      switch (production.type) {
        case 'text':
          return [production.text];
        case 'either':
          return production.of.flatMap(written);
        case 'sequence':
          return production.of.reduce<readonly string[]>(
            (before, part) => before.flatMap((start) => written(part).map((end) => start + end)),
            [''],
          );
        default:
          throw new TypeError(production.type);
      }
    };
    expect([...written(anyOfTexts(values))].toSorted()).toEqual(values.toSorted());
  });
});
