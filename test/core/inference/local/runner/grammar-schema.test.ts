import fc from 'fast-check';
import { getLlama, LlamaLogLevel, type Llama } from 'node-llama-cpp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { grammarSchema } from '../../../../../core/inference/local/runner/grammar-schema.ts';
import { runs } from '../../../../support/sampling.ts';

describe('what is kept, translated and left out', () => {
  test.each<[string, unknown, unknown]>([
    [
      'types and bounds',
      { type: 'string', minLength: 1, maxLength: 9, pattern: '^a' },
      { type: 'string', minLength: 1, maxLength: 9 },
    ],
    ['a bound too large for a grammar', { type: 'string', maxLength: 5000 }, { type: 'string' }],
    ['formats the grammar knows', { type: 'string', format: 'date-time' }, { type: 'string', format: 'date-time' }],
    ['formats it does not', { type: 'string', format: 'uri' }, { type: 'string' }],
    ['numbers without their ranges', { type: 'integer', minimum: 1, maximum: 5 }, { type: 'integer' }],
    [
      'anyOf as oneOf',
      { anyOf: [{ type: 'null' }, { type: 'boolean' }] },
      { oneOf: [{ type: 'null' }, { type: 'boolean' }] },
    ],
    ['a list of types', { type: ['string', 'null'] }, { oneOf: [{ type: 'string' }, { type: 'null' }] }],
    ['nullable', { type: 'integer', nullable: true }, { oneOf: [{ type: 'integer' }, { type: 'null' }] }],
    ['const and enum', { enum: ['a', 1, null, { no: 1 }] }, { enum: ['a', 1, null] }],
    [
      'arrays',
      { type: 'array', items: { type: 'string' }, minItems: 2 },
      { type: 'array', items: { type: 'string' }, minItems: 2 },
    ],
  ])('%s', (_name, schema, expected) => {
    expect(grammarSchema(schema, 'written')).toEqual(expected);
  });

  const person = {
    type: 'object',
    properties: { name: { type: 'string' }, age: { type: 'integer' } },
    required: ['name'],
    additionalProperties: false,
  };

  test('a response format writes optional properties, a tool call only those it means to', () => {
    const name = { name: { type: 'string' } };
    expect(grammarSchema(person, 'written')).toEqual({
      type: 'object',
      properties: { ...name, age: { type: 'integer' } },
    });
    expect(grammarSchema(person, 'free')).toEqual({ type: 'object', properties: name, additionalProperties: true });
  });

  test('definitions are followed, wherever they lie', () => {
    const schema = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/x~1y' } },
      required: ['a'],
      $defs: { 'x/y': { type: 'boolean' } },
    };
    expect(grammarSchema(schema, 'written')).toEqual({ type: 'object', properties: { a: { type: 'boolean' } } });
  });

  test('a definition that contains itself comes to an end, without its optional tail', () => {
    const node = {
      type: 'object',
      properties: { value: { type: 'integer' }, next: { $ref: '#' } },
      required: ['value'],
    };
    const tree = {
      $ref: '#/$defs/tree',
      $defs: {
        tree: {
          type: 'object',
          properties: { children: { type: 'array', items: { $ref: '#/$defs/tree' } } },
          required: ['children'],
        },
      },
    };
    expect(JSON.stringify(grammarSchema({ $ref: '#/$defs/n', $defs: { n: node } }, 'written'))).toContain('value');
    expect(JSON.stringify(grammarSchema(tree, 'written')).length).toBeLessThan(1000);
  });

  test('definitions that multiply at each level end before they fill the memory', () => {
    const level = (next: number) => ({ $ref: `#/$defs/d${next}` });
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const multiplied = (index: number) => ({
      type: 'object',
      properties: Object.fromEntries(names.map((name) => [name, level(index + 1)])),
      required: names,
    });
    const $defs = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`d${index}`, multiplied(index)]));
    for (const optional of ['written', 'free'] as const) {
      const wide = { allOf: [level(0), { $ref: '#/$defs/d1' }], $defs };
      expect(JSON.stringify(grammarSchema({ ...level(0), $defs }, optional)).length).toBeLessThan(1_000_000);
      expect(JSON.stringify(grammarSchema(wide, optional)).length).toBeLessThan(1_000_000);
    }
  });

  test('allOf of objects is one object', () => {
    const schema = {
      allOf: [person, { type: 'object', properties: { email: { type: 'string' } }, required: ['email'] }],
    };
    expect(Object.keys((grammarSchema(schema, 'written') as { properties: object }).properties)).toEqual([
      'name',
      'age',
      'email',
    ]);
  });
});

describe('with the engine itself', () => {
  let llama: Llama;
  beforeAll(async () => {
    llama = await getLlama({
      gpu: false,
      build: 'never',
      skipDownload: true,
      maxThreads: 1,
      logLevel: LlamaLogLevel.disabled,
    });
  });
  afterAll(() => llama?.dispose());

  const leaf = fc.constantFrom(
    { type: 'string' },
    { type: 'integer' },
    { const: 'x' },
    { enum: [1, 'a'] },
    {},
    true,
    { type: 'string', maxLength: 8000 },
    { type: 'unheard-of' },
  );
  const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.record({
        type: fc.constant('object'),
        properties: fc.dictionary(fc.string({ maxLength: 6 }), tie('schema'), { maxKeys: 3 }),
        required: fc.array(fc.constantFrom('a', 'b'), { maxLength: 2 }),
        additionalProperties: fc.option(fc.boolean(), { nil: undefined }),
      }),
      fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(3) }),
      fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    ),
  }));

  test('whatever schema a client sends, the result compiles to a grammar', async () => {
    await fc.assert(
      fc.asyncProperty(schema, fc.constantFrom('written' as const, 'free' as const), async (candidate, optional) => {
        await llama.createGrammarForJsonSchema({ oneOf: [grammarSchema(candidate, optional)] });
      }),
      runs(600),
    );
  });
});
