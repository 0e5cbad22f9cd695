/**
 * A list of schemas that hold all at once, as alternatives without any choice left in them: references followed, `allOf`
 * put together, `anyOf` and conditions multiplied out. What can't be said that way is left out and named. Pure.
 */
import { isRecord } from '../json.ts';
import type { Spend } from './automaton.ts';
import { isDisjoint } from './disjoint.ts';
import {
  emptyKeywords,
  malformedKeywords,
  mergeKeywords,
  readKeywords,
  type All,
  type FitsPattern,
  type Keywords,
} from './keywords.ts';
import { negations, NONE_OF } from './negation.ts';
import { asSchema, type References, type Schema } from './references.ts';

/** A schema that multiplies out to more than this is refused. */
const MAX_ALTERNATIVES = 2000;

/** Steps of work that putting one schema's keywords to the others takes. */
const MERGE_STEPS = 10;

/** The schema is too large, or its parts multiply. */
export class SchemaTooLarge extends Error {
  override readonly name = 'SchemaTooLarge';
}

type Parts = Readonly<Record<string, unknown>>;

/** One of these holds. */
interface Choice {
  readonly of: Schema;
  readonly keyword: string;
  readonly options: readonly All[];
}

export interface ExpansionOptions {
  readonly references: References;
  /** Is told of each keyword that is not held to. */
  readonly onGap: (keyword: string, part: object | undefined) => void;
  readonly fitsPattern: FitsPattern;
  readonly spend: Spend;
}

export class Expansion {
  readonly #options: ExpansionOptions;
  readonly #numbers = new Map<Schema, number>();
  readonly #expanded = new Map<string, readonly Keywords[]>();
  readonly #keywords = new Map<Schema, Keywords>();
  readonly #choices = new Map<Schema, readonly Choice[]>();
  #alternatives = 0;

  constructor(options: ExpansionOptions) {
    this.#options = options;
  }

  /** The same for the same schemas in whatever order. */
  keyOf(all: All): string {
    const numberOf = (schema: Schema): number => {
      const known = this.#numbers.get(schema) ?? this.#numbers.size;
      this.#numbers.set(schema, known);
      return known;
    };
    return [...new Set(all.map(numberOf))].toSorted((a, b) => a - b).join();
  }

  /** @throws {SchemaTooLarge} */
  expand(all: All): readonly Keywords[] {
    const key = this.keyOf(all);
    const known = this.#expanded.get(key);
    if (known !== undefined) return known;
    // While its alternatives are being found, a schema may be anything.
    this.#expanded.set(key, [emptyKeywords()]);
    const found = this.#multiplied(all, new Set());
    this.#expanded.set(key, found);
    return found;
  }

  #multiplied(all: All, settled: ReadonlySet<Choice>): readonly Keywords[] {
    this.#alternatives += 1;
    if (this.#alternatives > MAX_ALTERNATIVES) throw new SchemaTooLarge();
    const collected = this.#collect(all);
    if (collected === undefined || collected.keywords.types?.size === 0) return [];
    const [choice, ...others] = collected.choices.filter((one) => !settled.has(one));
    if (choice === undefined) return [collected.keywords];
    const options =
      choice.keyword === 'oneOf'
        ? this.#exclusive(choice, { keywords: collected.keywords, isWhole: others.length === 0 })
        : choice.options;
    return options.flatMap((option) => this.#multiplied([...all, ...option], new Set([...settled, choice])));
  }

  /** Everything that holds whatever is chosen. @returns undefined where nothing fits */
  #collect(all: All): { readonly keywords: Keywords; readonly choices: readonly Choice[] } | undefined {
    const seen = new Set<Schema>();
    const choices: Choice[] = [];
    const waiting = [...all];
    let keywords = emptyKeywords();
    for (let schema = waiting.shift(); schema !== undefined; schema = waiting.shift()) {
      if (schema === false) return undefined;
      if (schema === true || seen.has(schema)) continue;
      seen.add(schema);
      this.#options.spend(MERGE_STEPS + keywords.properties.size);
      const isAlone = all.length === 1 && seen.size === 1;
      keywords = mergeKeywords(keywords, this.#read(schema), this.#options.fitsPattern);
      waiting.push(...this.#implied(schema));
      choices.push(...this.#choicesOf(schema));
      if (!isAlone) this.#refuseUnevaluated(schema);
    }
    const [first] = all;
    return { keywords: first === undefined ? keywords : this.#withUnevaluated(first, keywords), choices };
  }

  #read(schema: Parts): Keywords {
    const known = this.#keywords.get(schema);
    if (known !== undefined) return known;
    for (const keyword of UNSUPPORTED) if (keyword in schema) this.#options.onGap(keyword, schema);
    for (const keyword of malformedKeywords(schema)) this.#options.onGap(keyword, schema);
    const excluded = schema[NONE_OF];
    const keywords = readKeywords(schema);
    const all = Array.isArray(excluded) ? { ...keywords, excluded } : keywords;
    this.#keywords.set(schema, all);
    return all;
  }

  #implied(schema: Parts): All {
    const implied = (Array.isArray(schema['allOf']) ? schema['allOf'] : []).map((one) => asSchema(one) ?? true);
    const reference = schema['$ref'];
    if (typeof reference !== 'string') return implied;
    const target = this.#options.references.resolve(reference);
    if (target === undefined) this.#options.onGap('$ref', schema);
    return target === undefined ? implied : [...implied, target];
  }

  /** `unevaluatedProperties` is `additionalProperties` to a schema with nothing beside it. */
  #withUnevaluated(schema: Schema, keywords: Keywords): Keywords {
    if (typeof schema === 'boolean') return keywords;
    const properties = asSchema(schema['unevaluatedProperties']);
    const items = asSchema(schema['unevaluatedItems']);
    if (properties === undefined && items === undefined) return keywords;
    // What a negation is made of is evaluated by nobody.
    if (['if', 'not', 'oneOf', 'dependentSchemas', 'dependentRequired', 'contains'].some((one) => one in schema)) {
      this.#refuseUnevaluated(schema);
    }
    return {
      ...keywords,
      ...(properties === undefined || keywords.additional !== undefined ? {} : { additional: [properties] }),
      ...(items === undefined || keywords.items !== undefined ? {} : { items: [items] }),
    };
  }

  #refuseUnevaluated(schema: Parts): void {
    for (const keyword of ['unevaluatedProperties', 'unevaluatedItems']) {
      if (keyword in schema && schema[keyword] !== true) this.#options.onGap(keyword, schema);
    }
  }

  #choicesOf(schema: Parts): readonly Choice[] {
    const known = this.#choices.get(schema);
    if (known !== undefined) return known;
    const choices = [
      ...this.#listed('anyOf', schema),
      ...this.#listed('oneOf', schema),
      ...this.#negation(schema),
      ...this.#condition(schema),
      ...this.#dependencies(schema),
    ];
    this.#choices.set(schema, choices);
    return choices;
  }

  #listed(keyword: 'anyOf' | 'oneOf', schema: Parts): readonly Choice[] {
    const listed = schema[keyword];
    if (!Array.isArray(listed)) return [];
    return [{ of: schema, keyword, options: listed.map((one) => [asSchema(one) ?? true]) }];
  }

  #negation(schema: Parts): readonly Choice[] {
    const not = asSchema(schema['not']);
    if (not === undefined) return [];
    return this.#unless(not, { of: schema, keyword: 'not', also: [] });
  }

  #condition(schema: Parts): readonly Choice[] {
    const condition = asSchema(schema['if']);
    const then = asSchema(schema['then']) ?? true;
    const otherwise = asSchema(schema['else']) ?? true;
    if (condition === undefined || (then === true && otherwise === true)) return [];
    const [unmet] = this.#unless(condition, { of: schema, keyword: 'if', also: [otherwise] });
    return unmet === undefined ? [] : [{ ...unmet, options: [[condition, then], ...unmet.options] }];
  }

  /** Where `schema` doesn't hold, and what does then. */
  #unless(schema: Schema, { of, keyword, also }: Omit<Choice, 'options' | 'of'> & { of: Parts; also: All }): Choice[] {
    const said = negations(schema, this.#options.references);
    if (said !== undefined) return [{ of, keyword, options: said.map((one) => [one, ...also]) }];
    this.#options.onGap(keyword, of);
    return [];
  }

  #dependencies(schema: Parts): readonly Choice[] {
    const found = ['dependentRequired', 'dependentSchemas', 'dependencies'].flatMap((keyword) => {
      const value = schema[keyword];
      return isRecord(value) ? Object.entries(value).map(([name, needed]) => ({ keyword, name, needed })) : [];
    });
    return found.map(({ keyword, name, needed }) => {
      const then = Array.isArray(needed) ? { required: needed } : (asSchema(needed) ?? true);
      const present = { type: 'object', required: [name] };
      const others = { type: ['null', 'boolean', 'array', 'number', 'string'] };
      return {
        of: schema,
        keyword,
        options: [[{ type: 'object', properties: { [name]: false } }], [present, then], [others]],
      };
    });
  }

  /** Each option of a `oneOf`, held apart from the others where they could be true as well. */
  #exclusive(choice: Choice, around: { readonly keywords: Keywords; readonly isWhole: boolean }): readonly All[] {
    return choice.options.flatMap((option, index) => {
      const overlapping = choice.options.filter((other, at) => at !== index && !this.#areApart(option, other, around));
      let apart: readonly All[] = [option];
      for (const other of overlapping) {
        const said = negations(other[0] ?? true, this.#options.references);
        if (said === undefined) {
          this.#options.onGap('oneOf', typeof choice.of === 'object' ? choice.of : undefined);
          return [option];
        }
        apart = apart.flatMap((all) => said.map((one) => [...all, one]));
        if (apart.length > MAX_ALTERNATIVES) throw new SchemaTooLarge();
      }
      return apart;
    });
  }

  #areApart(
    option: All,
    other: All,
    { keywords, isWhole }: { readonly keywords: Keywords; readonly isWhole: boolean },
  ): boolean {
    const { fitsPattern } = this.#options;
    const theirs = this.expand(other);
    return this.expand(option).every((one) => {
      const written = mergeKeywords(keywords, one, fitsPattern);
      return theirs.every((under) => isDisjoint({ ...written, isWhole }, under, (all) => this.expand(all)));
    });
  }
}

const UNSUPPORTED = ['$dynamicRef', '$recursiveRef'];
