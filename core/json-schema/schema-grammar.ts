/**
 * JSON Schema (drafts 4 to 2020-12) as a grammar that a model is held to while it writes. Pure.
 *
 * Whatever the grammar lets pass fits the schema, but for what is named in `gaps`; it does not let pass all that would
 * fit. An object has its named properties in the schema's order, and others only where the schema asks for them. A list
 * of prefix items is written whole. Numbers are finite, and white space is bounded.
 */
import { JSON_RULES } from './json-text.ts';
import { countOpenWays, either, pruned, printGrammar, type Production } from './grammar.ts';
import { Expansion, SchemaTooLarge } from './expansion.ts';
import { createReferences, type Schema } from './references.ts';
import { createStringRules } from './string-rules.ts';
import { GrammarWriter } from './grammar-writer.ts';

export type SchemaGrammar =
  | {
      readonly isPossible: true;
      /** Its rules as llama.cpp reads them. */
      readonly gbnf: string;
      readonly grammar: ReadonlyMap<string, Production>;
      /** What is not held to: where it stands and the keyword, `properties.tags.uniqueItems`. */
      readonly gaps: readonly string[];
    }
  | {
      readonly isPossible: false;
      /** `too-large` for one whose grammar would be, `nothing-fits` for one that no value fits. */
      readonly reason: 'too-large' | 'nothing-fits';
    };

/** Characters of GBNF. The engine reads all of it again for each answer. */
const MAX_GRAMMAR_LENGTH = 1_000_000;

/** Each token takes the engine about 10 ms where so many are open, and four times as much for twice as many. */
const MAX_OPEN_WAYS = 400;

/** States, moves and the like that are made on the way: some tenths of a second. */
const MAX_STEPS = 200_000;

/** @param schema whatever a client sent as one */
export function schemaGrammar(schema: Schema): SchemaGrammar {
  try {
    return written(schema);
  } catch (error) {
    if (error instanceof SchemaTooLarge) return { isPossible: false, reason: 'too-large' };
    throw error;
  }
}

/** Any JSON object, which is what a response format without a schema asks for. */
export const ANY_OBJECT: Schema = { type: 'object' };

function written(schema: Schema): SchemaGrammar {
  const references = createReferences(schema);
  const gaps = new Set<string>();
  const onGap = (keyword: string, part: object | undefined): void => {
    const path = part === undefined ? '' : references.pathOf(part);
    gaps.add(path === '' ? keyword : `${path}.${keyword}`);
  };
  let steps = 0;
  const spend = (count: number): void => {
    steps += count;
    if (steps > MAX_STEPS) throw new SchemaTooLarge();
  };
  const strings = createStringRules(spend);
  const expansion = new Expansion({ references, onGap, fitsPattern: strings.fitsPattern, spend });
  const writer = new GrammarWriter({ expansion, strings, onGap, spend });
  const root = writer.value([schema]);
  const grammar = pruned(new Map([['root', either(root)], ...Object.entries(JSON_RULES), ...writer.rules]));
  if (grammar === undefined) return { isPossible: false, reason: 'nothing-fits' };
  if (countOpenWays(grammar) > MAX_OPEN_WAYS) throw new SchemaTooLarge();
  const gbnf = printGrammar(grammar);
  if (gbnf.length > MAX_GRAMMAR_LENGTH) throw new SchemaTooLarge();
  return { isPossible: true, gbnf, grammar, gaps: [...gaps] };
}
