/** A schema's complaint, as a client is told of it: one, soon, and short. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { parseBody } from '../../gateway/json-body.ts';

test('of ten thousand items that are all wrong one is looked at', () => {
  let looked = 0;
  const item = z.preprocess((value) => {
    looked += 1;
    return value;
  }, z.string());
  const schema = z.looseObject({ list: z.union([z.string(), z.array(item).min(1)]).nullish() });
  expect(() => parseBody(schema, { list: Array.from({ length: 10_000 }, () => 0) })).toThrow(/^list\[0\]: /);
  expect(looked).toBe(1);
});

test('a key of a client in the path of a field is not repeated at length', () => {
  const schema = z.object({ map: z.record(z.string(), z.number()) });
  const refusal = (): unknown => parseBody(schema, { map: { ['k'.repeat(4000)]: 'x' } });
  expect(refusal).toThrow(expect.objectContaining({ param: `map.${'k'.repeat(296)}…` }));
});

test('nor are the names of a thousand keys that have no place here', () => {
  const keys = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`key-${at}`, 0]));
  const length = (): number => {
    try {
      parseBody(z.strictObject({}), keys);
    } catch (error) {
      return String(error).length;
    }
    return 0;
  };
  expect(length()).toBeGreaterThan(0);
  expect(length()).toBeLessThan(400);
});

test.each<[z.ZodType, unknown, string]>([
  [z.union([z.string(), z.array(z.string())]), 7, 'expected string or array'],
  [z.union([z.enum(['none', 'auto']), z.object({ name: z.string() })]), 'x', 'expected "none" or "auto" or object'],
  [z.union([z.string(), z.array(z.string())], { error: 'expected a text' }), 7, 'expected a text'],
  [z.enum(['a', 'b']), 'c', 'expected "a" or "b"'],
  [z.literal('a'), 'c', 'expected "a"'],
  [z.int(), 0.5, 'expected a whole number'],
  [z.string(), 7, 'expected string, received number'],
])('says what was expected', (schema, value, message) => {
  expect(() => parseBody(z.object({ field: schema }), { field: value })).toThrow(`field: ${message}`);
});

test('says which kinds of a thing there are', () => {
  const kinds = [z.object({ type: z.literal('text') }), z.object({ type: z.enum(['image', 'sound']) })] as const;
  const schema = z.discriminatedUnion('type', kinds);
  for (const value of [{ type: 'smell' }, {}]) {
    expect(() => parseBody(schema, value)).toThrow('type: expected "text", "image" or "sound"');
  }
});
