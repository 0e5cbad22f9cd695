/**
 * The official JSON Schema test suite, from the other side: not whether a validator takes the right values, but whether
 * all that a model can write under a schema's grammar is right. A model without an opinion of its own draws at random.
 */
import { readFileSync } from 'node:fs';
import { Validator } from '@cfworker/json-schema';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import type { Llama } from 'node-llama-cpp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { schemaGrammar } from '../../../core/json-schema/schema-grammar.ts';
import { createSampler, randomNumbers } from '../../support/grammar-samples.ts';
import { engineWithoutModel, readGrammar } from '../../support/native-grammar.ts';
import { runs, seed } from '../../support/sampling.ts';

interface Group {
  readonly description: string;
  readonly schema: boolean | Record<string, unknown>;
  readonly tests: readonly { readonly data: unknown; readonly valid: boolean }[];
}

const suite = Object.entries(
  JSON.parse(readFileSync(new URL('../../schemas/json-schema-draft7.json', import.meta.url), 'utf8')) as Record<
    string,
    readonly Group[]
  >,
).flatMap(([file, groups]) => groups.map((group) => ({ name: `${file}: ${group.description}`, ...group })));

/** What of the suite a grammar can't say: refused where the client is strict, and named. */
const REFUSED: Readonly<Record<string, string>> = {
  'definitions: valid definition': '$ref',
  'definitions: invalid definition': '$ref',
  'multipleOf: by number': 'multipleOf',
  'multipleOf: by small number': 'multipleOf',
  'not: not': 'not',
  'not: not multiple types': 'not',
  'oneOf: oneOf': 'oneOf',
  'ref: remote ref, containing refs itself': '$ref',
  'ref: Recursive references between schemas': 'properties.nodes.items.$ref',
  'refRemote: remote ref': '$ref',
  'refRemote: fragment within remote ref': '$ref',
  'refRemote: ref within remote ref': '$ref',
  'refRemote: base URI change': 'items.items.$ref',
  'refRemote: base URI change - change folder': 'properties.list.$ref',
  'refRemote: base URI change - change folder in subschema': 'properties.list.$ref',
  'refRemote: root ref in remote ref': 'properties.name.$ref',
  'uniqueItems: uniqueItems validation': 'uniqueItems',
  'optional/ecmascript-regex: ECMA 262 regex non-compliance': 'format',
};

const grammars = suite.map((group) => ({ ...group, grammar: schemaGrammar(group.schema) }));

describe('the JSON Schema test suite', () => {
  test('what cannot be said in a grammar is named, and nothing else is', () => {
    const refused = grammars.flatMap(({ name, grammar }) =>
      grammar.isPossible && grammar.gaps.length > 0 ? [[name, grammar.gaps.join()]] : [],
    );
    expect(Object.fromEntries(refused)).toEqual(REFUSED);
  });

  test('a schema is said to have no values only where it has none', () => {
    const impossible = grammars.filter(({ grammar }) => !grammar.isPossible);
    expect(impossible.length).toBeGreaterThan(5);
    for (const { name, grammar, tests } of impossible) {
      expect({ name, grammar, valid: tests.filter(({ valid }) => valid) }).toEqual({
        name,
        grammar: { isPossible: false, reason: 'nothing-fits' },
        valid: [],
      });
    }
  });

  let llama: Llama;
  beforeAll(async () => {
    llama = await engineWithoutModel();
  });
  afterAll(() => llama?.dispose());

  const taken = grammars.flatMap(({ name, schema, grammar }) =>
    grammar.isPossible && grammar.gaps.length === 0 ? [{ name, schema, ...grammar }] : [],
  );
  const { numRuns } = runs(400);

  test.each(taken)('$name', async ({ schema, gbnf, grammar }) => {
    const ajv = new Ajv({ strict: false });
    addFormats.default(ajv);
    const isValid = ajv.compile(schema);
    const ours = new Validator(schema, '7');
    const passes = await readGrammar(llama, gbnf);
    const sample = createSampler(grammar, randomNumbers(seed));
    for (let run = 0; run < numRuns; run += 1) {
      const text = sample();
      expect([text, passes(text)]).toEqual([text, true]);
      const value: unknown = JSON.parse(text);
      expect([text, isValid(value), ours.validate(value as object).valid]).toEqual([text, true, true]);
    }
  });
});
