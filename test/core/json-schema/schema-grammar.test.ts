import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import type { Llama } from 'node-llama-cpp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { schemaGrammar } from '../../../core/json-schema/schema-grammar.ts';
import { createSampler, randomNumbers } from '../../support/grammar-samples.ts';
import { engineWithoutModel, readGrammar } from '../../support/native-grammar.ts';
import { runs, seed } from '../../support/sampling.ts';

let llama: Llama;
beforeAll(async () => {
  llama = await engineWithoutModel();
});
afterAll(() => llama?.dispose());

type Schema = boolean | Record<string, unknown>;

/** @returns whether the engine lets each of the texts pass */
async function passes(schema: Schema, texts: readonly string[]): Promise<readonly (readonly [string, boolean])[]> {
  const held = schemaGrammar(schema);
  if (!held.isPossible) throw new Error(held.reason);
  expect(held.gaps).toEqual([]);
  const isPassed = await readGrammar(llama, held.gbnf);
  return texts.map((text) => [text, isPassed(text)]);
}

/** An object with a member `then`, which is no promise. */
function condition(met: Schema, consequence: Schema, otherwise: Schema = true): Record<string, unknown> {
  const parts = [met, consequence, otherwise];
  return Object.fromEntries(['if', 'then', 'else'].map((name, index) => [name, parts[index]]));
}

interface Case {
  readonly name: string;
  readonly schema: Schema;
  readonly yes: readonly unknown[];
  readonly no: readonly unknown[];
}

const CASES: readonly Case[] = [
  {
    name: 'integers between bounds',
    schema: { type: 'integer', minimum: -12, maximum: 130 },
    yes: [-12, -1, 0, 9, 99, 130],
    no: [-13, -20, 131, 1000, 1.5],
  },
  {
    name: 'bounds that are excluded',
    schema: { type: 'integer', exclusiveMinimum: 5, exclusiveMaximum: 100 },
    yes: [6, 10, 99],
    no: [5, 100, 0, -7],
  },
  {
    name: 'draft 4 bounds that are excluded',
    schema: { type: 'integer', minimum: 5, exclusiveMinimum: true },
    yes: [6],
    no: [5],
  },
  {
    name: 'numbers with a fraction between bounds',
    schema: { type: 'number', minimum: -0.5, maximum: 1.25 },
    yes: [-0.5, -0.25, 0, 0.001, 1, 1.2, 1.25],
    no: [-0.51, -1, 1.26, 1.3, 2, 10],
  },
  {
    name: 'multiples',
    schema: { type: 'integer', multipleOf: 15, minimum: 0 },
    yes: [0, 15, 150, 1005],
    no: [5, 10, 100, -15],
  },
  { name: 'numbers are finite', schema: { type: 'number' }, yes: [1.5e10, -2], no: [] },
  {
    name: 'lengths in characters, not in UTF-16 units',
    schema: { type: 'string', minLength: 2, maxLength: 3 },
    yes: ['ab', 'aé😀'],
    no: ['a', '😀', 'abcd'],
  },
  {
    name: 'an anchored pattern',
    schema: { type: 'string', pattern: '^[A-Z]{2}-\\d+$' },
    yes: ['AB-1', 'ZZ-123'],
    no: ['AB-', 'xAB-1', 'AB-1x', 'AB-1\n'],
  },
  {
    name: 'a pattern anywhere',
    schema: { type: 'string', pattern: 'a|^b' },
    yes: ['a', 'xax', 'b', 'bx"\\'],
    no: ['', 'xb'],
  },
  {
    name: 'a pattern and a length',
    schema: { type: 'string', pattern: '^[a-z]+$', maxLength: 3 },
    yes: ['a', 'abc'],
    no: ['', 'abcd', 'A'],
  },
  {
    name: 'dates that are in the calendar',
    schema: { type: 'string', format: 'date' },
    yes: ['2024-02-29', '2023-12-31', '2000-02-29'],
    no: ['2023-02-29', '1900-02-29', '2024-04-31', '2024-13-01', '24-01-01'],
  },
  {
    name: 'times and dates',
    schema: { type: 'string', format: 'date-time' },
    yes: ['2024-02-29T23:59:59Z', '2024-01-01T00:00:00.123+02:00'],
    no: ['2024-02-29', '2024-02-29T24:00:00Z', '2024-02-29T23:59:59'],
  },
  {
    name: 'emails',
    schema: { type: 'string', format: 'email' },
    yes: ['ada@example.com', 'a.b+c@x.org'],
    no: ['ada', 'ada@', '@x.org', 'a b@x.org'],
  },
  {
    name: 'uuids',
    schema: { type: 'string', format: 'uuid' },
    yes: ['123e4567-e89b-12d3-a456-426614174000'],
    no: ['123e4567'],
  },
  { name: 'IPv4', schema: { type: 'string', format: 'ipv4' }, yes: ['10.0.0.255'], no: ['10.0.0.256', '10.0.0'] },
  { name: 'IPv6', schema: { type: 'string', format: 'ipv6' }, yes: ['::1', 'fe80::1:2', '::'], no: ['1:2', ':::'] },
  { name: 'URIs', schema: { type: 'string', format: 'uri' }, yes: ['https://a.b/c?d#e'], no: ['a/b', 'https://a b'] },
  {
    name: 'values of mixed types',
    schema: { enum: ['a', 1, null, { b: [true] }], not: { const: 1 } },
    yes: ['a', null, { b: [true] }],
    no: [1, 'b', {}],
  },
  {
    name: 'optional properties, which may be left out',
    schema: {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { type: 'integer' }, c: { type: 'integer' } },
      required: ['b'],
      additionalProperties: false,
    },
    yes: [{ b: 1 }, { a: 1, b: 2 }, { b: 2, c: 3 }, { a: 1, b: 2, c: 3 }],
    no: [{}, { a: 1 }, { b: 'x' }, { b: 1, d: 1 }],
  },
  {
    name: 'other properties by a schema, whose names are not those that are named',
    schema: { type: 'object', properties: { a: { type: 'integer' } }, additionalProperties: { type: 'string' } },
    yes: [{}, { a: 1 }, { a: 1, b: 'x' }, { ab: 'x', '': 'y' }],
    no: [{ a: 'x' }, { b: 1 }],
  },
  {
    name: 'alternatives',
    schema: { anyOf: [{ type: 'null' }, { type: 'array', items: { type: 'boolean' }, minItems: 1, maxItems: 2 }] },
    yes: [null, [true], [true, false]],
    no: [[], [1], [true, true, true]],
  },
  {
    name: 'alternatives of which only one may hold, held apart',
    schema: {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { type: 'integer' } },
      oneOf: [{ required: ['a'] }, { required: ['b'] }],
    },
    yes: [{ a: 1 }, { b: 1 }],
    no: [{}, { a: 1, b: 1 }],
  },
  {
    name: 'a condition',
    schema: {
      type: 'object',
      properties: { kind: { enum: ['card', 'cash'] }, number: { type: 'string' } },
      required: ['kind'],
      ...condition({ properties: { kind: { const: 'card' } } }, { required: ['number'] }),
    },
    yes: [{ kind: 'cash' }, { kind: 'card', number: '1' }],
    no: [{ kind: 'card' }],
  },
  {
    name: 'references and a definition that contains itself',
    schema: {
      $ref: '#/$defs/node',
      $defs: {
        node: {
          type: 'object',
          properties: { value: { type: 'integer' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
          required: ['value'],
        },
      },
    },
    yes: [{ value: 1 }, { value: 1, children: [{ value: 2, children: [] }] }],
    no: [{ value: 1, children: [{}] }],
  },
  {
    name: 'schemas that hold at once',
    schema: {
      allOf: [
        { type: 'object', properties: { a: { type: 'integer', minimum: 1 } }, required: ['a'] },
        { properties: { a: { maximum: 3 }, b: { type: 'boolean' } }, required: ['b'] },
      ],
    },
    yes: [{ a: 1, b: true }],
    no: [{ a: 0, b: true }, { a: 4, b: true }, { a: 1 }],
  },
  {
    name: 'a list whose first items are their own',
    schema: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], items: { type: 'null' } },
    yes: [
      ['a', 1],
      ['a', 1, null],
    ],
    no: [
      [1, 'a'],
      ['a', 1, 2],
    ],
  },
  {
    name: 'how many properties',
    schema: {
      type: 'object',
      properties: { a: {}, b: {}, c: {} },
      minProperties: 1,
      maxProperties: 2,
      additionalProperties: false,
    },
    yes: [{ a: 1 }, { b: 1, c: 2 }],
    no: [{}, { a: 1, b: 2, c: 3 }],
  },
  {
    name: 'properties that need others',
    schema: {
      type: 'object',
      properties: { card: { type: 'integer' }, address: { type: 'string' } },
      dependentRequired: { card: ['address'] },
    },
    yes: [{}, { address: 'x' }, { card: 1, address: 'x' }],
    no: [{ card: 1 }],
  },
  {
    name: 'properties that no part evaluates',
    schema: {
      type: 'object',
      properties: { a: { type: 'integer' } },
      allOf: [{ properties: { b: { type: 'integer' } } }],
      unevaluatedProperties: false,
    },
    yes: [{ a: 1, b: 2 }],
    no: [{ c: 1 }],
  },
];

describe('what the engine lets a model write', () => {
  test.each(CASES)('$name', async ({ schema, yes, no }) => {
    const texts = [...yes, ...no].map((value) => JSON.stringify(value));
    expect(await passes(schema, texts)).toEqual(texts.map((text, index) => [text, index < yes.length]));
  });

  test.each(CASES)('$name: whatever is drawn from it fits the schema', ({ schema }) => {
    if (JSON.stringify(schema).includes('"exclusiveMinimum":true')) return;
    expectSamplesToFit(schema, runs(400).numRuns);
  });

  test('white space comes to an end', async () => {
    const texts = [
      '{"a":1}',
      '{ "a": 1 }',
      '{\n  "a": 1\n}',
      '{  "a":1}',
      `{${'\n'.repeat(2)}"a":1}`,
      '{"a" :1}',
      ' {"a":1}',
    ];
    const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] };
    expect((await passes(schema, texts)).map(([, passed]) => passed)).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  });

  test('lengths that the engine would not repeat at once', async () => {
    const schema = { type: 'string', minLength: 1500, maxLength: 4100 };
    const lengths = [1499, 1500, 2500, 3499, 3500, 4100, 4101];
    const texts = lengths.map((length) => JSON.stringify('a'.repeat(length)));
    expect((await passes(schema, texts)).map(([, passed]) => passed)).toEqual([
      ...[false, true, true, true, true, true, false],
    ]);
  });
});

function expectSamplesToFit(schema: Schema, count: number): void {
  const held = schemaGrammar(schema);
  if (!held.isPossible) return;
  if (held.gaps.length > 0) return;
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  const isValid = ajv.compile(schema);
  const sample = createSampler(held.grammar, randomNumbers(seed));
  for (let run = 0; run < count; run += 1) {
    const text = sample();
    expect([text, isValid(JSON.parse(text))]).toEqual([text, true]);
  }
}

describe('what cannot be said', () => {
  test.each<[string, Schema, string]>([
    [
      'items that differ',
      { properties: { tags: { type: 'array', uniqueItems: true } } },
      'properties.tags.uniqueItems',
    ],
    ['look-ahead', { type: 'string', pattern: '^(?=a)' }, 'pattern'],
    ['back references', { type: 'string', pattern: '(a)\\1' }, 'pattern'],
    ['an unknown format', { type: 'string', format: 'phone' }, 'format'],
    ['parts of a unit', { type: 'number', multipleOf: 0.1 }, 'multipleOf'],
    ['references to elsewhere', { $ref: 'https://example.com/schema' }, '$ref'],
    ['alternatives that cannot be held apart', { oneOf: [{ pattern: 'a' }, { pattern: 'b' }] }, 'oneOf'],
  ])('%s', (_name, schema, gap) => {
    expect(schemaGrammar(schema)).toMatchObject({ isPossible: true, gaps: [gap] });
  });

  test('schemas that no value fits', () => {
    for (const schema of [false, { type: 'string', enum: [1] }, { allOf: [{ type: 'string' }, { type: 'null' }] }]) {
      expect(schemaGrammar(schema)).toEqual({ isPossible: false, reason: 'nothing-fits' });
    }
    const endless = { type: 'object', properties: { next: { $ref: '#' } }, required: ['next'] };
    expect(schemaGrammar(endless)).toEqual({ isPossible: false, reason: 'nothing-fits' });
  });
});

describe('schemas made to take for ever', () => {
  const hostile: readonly (readonly [string, Schema])[] = [
    [
      'alternatives that multiply',
      {
        allOf: Array.from({ length: 30 }, (_, at) => ({ anyOf: [{ required: [`a${at}`] }, { required: [`b${at}`] }] })),
      },
    ],
    ['a pattern whose states multiply', { type: 'string', pattern: '(a|b)*a(a|b){18}' }],
    ['a pattern of a thousand options', { type: 'string', pattern: `^${'a?'.repeat(990)}$` }],
    [
      'many patterns at once',
      { allOf: Array.from({ length: 12 }, (_, at) => ({ pattern: `[a-z]{${at + 1}}x[^${at}]{3,20}` })) },
    ],
    [
      'a hundred large patterns',
      {
        properties: Object.fromEntries(
          Array.from({ length: 100 }, (_, at) => [
            `p${at}`,
            { type: 'string', pattern: `[a-z]{3}.*${at}[0-9]{2,300}` },
          ]),
        ),
      },
    ],
    ['definitions that multiply', multiplying()],
    ['a reference to itself', { $ref: '#' }],
    [
      'references in a circle',
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { anyOf: [{ $ref: '#/$defs/a' }] } } },
    ],
    ['not not not', Array.from({ length: 90 }).reduce<Record<string, unknown>>((not) => ({ not }), { type: 'null' })],
  ];

  test.each(hostile)('%s', (_name, schema) => {
    const before = process.cpuUsage();
    const held = schemaGrammar(schema);
    const { user } = process.cpuUsage(before);
    if (held.isPossible) expect(held.gbnf.length).toBeLessThan(1_000_000);
    // Some tenths of a second are what it takes; without a bound, minutes.
    expect(user / 1e6).toBeLessThan(5);
  });
});

function multiplying(): Schema {
  const refs = Array.from({ length: 40 }, (_, at) => [
    `d${at}`,
    { anyOf: Array.from({ length: 8 }, (__, n) => ({ $ref: `#/$defs/d${(at + n + 1) % 40}` })) },
  ]);
  return { $ref: '#/$defs/d0', $defs: Object.fromEntries(refs) };
}

describe('any schema at all', () => {
  const leaf = fc.constantFrom<Schema>(
    { type: 'string' },
    { type: 'integer', minimum: 3 },
    { type: 'number', exclusiveMaximum: 2.5 },
    { type: 'string', pattern: '^a+$', minLength: 2 },
    { type: 'string', maxLength: 8000 },
    { const: 'x' },
    { enum: [1, 'a', null] },
    {},
    true,
    false,
    { type: 'unheard-of' },
    { not: { type: 'object' } },
  );
  const { schema } = fc.letrec<{ schema: Schema }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.record(
        {
          type: fc.constant('object'),
          properties: fc.dictionary(fc.string({ maxLength: 6 }), tie('schema'), { maxKeys: 3 }),
          required: fc.uniqueArray(fc.constantFrom('a', 'b'), { maxLength: 2 }),
          additionalProperties: tie('schema'),
          patternProperties: fc.dictionary(fc.constantFrom('^a', 'b$'), tie('schema'), { maxKeys: 2 }),
          minProperties: fc.nat(2),
          maxProperties: fc.nat(4),
        },
        { requiredKeys: ['type'] },
      ),
      fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(3) }),
      fc.record({ prefixItems: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }), items: tie('schema') }),
      fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
      fc.tuple(tie('schema'), tie('schema'), tie('schema')).map((parts) => condition(...parts)),
      fc.record({ not: tie('schema'), type: fc.constantFrom('string', 'object', 'integer') }),
    ),
  }));

  test('makes a grammar that the engine reads, and whose texts fit', async () => {
    await fc.assert(
      fc.asyncProperty(schema, async (candidate) => {
        const held = schemaGrammar(candidate);
        if (!held.isPossible) return;
        await readGrammar(llama, held.gbnf);
        if (!JSON.stringify(candidate).includes('unheard-of')) expectSamplesToFit(candidate, 10);
      }),
      runs(2000),
    );
  });
});
