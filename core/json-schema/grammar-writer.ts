/** The rules of a grammar for schemas: one for each list of schemas that hold at once. Pure. */
import { NOTHING, either, NEVER, repeatAtLength, rule, sequence, text, type Production } from './grammar.ts';
import { isOpenObject, typesOf } from './disjoint.ts';
import { SchemaTooLarge, type Expansion } from './expansion.ts';
import { anyOfTexts } from './listed-texts.ts';
import { numeralOf, stringOf, type RuleMaker } from './json-text.ts';
import { numerals, type NumeralRange } from './numeral.ts';
import type { All, JsonType, Keywords } from './keywords.ts';
import { writeObject } from './object-rules.ts';
import { together, type StringRules } from './string-rules.ts';
import type { Schema } from './references.ts';
import { fits } from './value-check.ts';
import { complement, length, oneOf, type Automaton, type Spend } from './automaton.ts';

/** A schema whose grammar takes more is refused. */
const MAX_RULES = 20_000;

export interface WriterOptions {
  readonly expansion: Expansion;
  readonly strings: StringRules;
  readonly onGap: (keyword: string, part: object | undefined) => void;
  readonly spend: Spend;
}

export class GrammarWriter {
  readonly rules = new Map<string, Production>();
  readonly maker: RuleMaker;
  readonly #options: WriterOptions;
  readonly #values = new Map<string, Production>();

  constructor(options: WriterOptions) {
    this.#options = options;
    this.maker = { declare: () => this.declare(), spend: options.spend };
  }

  /** Whatever fits all of these. @throws {SchemaTooLarge} */
  value(all: All): Production {
    const told = all.filter((schema) => schema !== true);
    if (told.includes(false)) return NEVER;
    if (told.length === 0) return rule('value');
    const key = this.#options.expansion.keyOf(told);
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const { reference, be } = this.declare();
    this.#values.set(key, reference);
    const [first] = told;
    const part = typeof first === 'object' ? first : undefined;
    const alternatives = this.#options.expansion.expand(told).map((keywords) => this.#alternative(keywords, part));
    const texts = alternatives.flatMap((one) => (one.type === 'text' ? [one.text] : []));
    const others = alternatives.filter(({ type }) => type !== 'text');
    be(texts.length === 0 ? either(...others) : either(anyOfTexts(texts), ...others));
    return reference;
  }

  /** A rule whose content comes later, so that it may contain itself. */
  declare(): { readonly reference: Production; readonly be: (production: Production) => void } {
    if (this.rules.size >= MAX_RULES) throw new SchemaTooLarge();
    const name = `r${this.rules.size}`;
    this.rules.set(name, NEVER);
    return { reference: rule(name), be: (production) => void this.rules.set(name, production) };
  }

  /** What is said of a name, as automata; undefined where that is more than they can say. */
  namesOf(schema: Schema): readonly Automaton[] | undefined {
    const { expansion, strings } = this.#options;
    const [keywords, ...others] = expansion.expand([schema]).filter(({ types }) => types?.has('string') !== false);
    if (keywords === undefined) return [oneOf([])];
    if (others.length > 0) return undefined;
    const { minLength, maxLength, values, excluded } = keywords;
    const read = [...keywords.patterns.map(strings.pattern), ...keywords.formats.map(strings.format)];
    const said = read.filter((automaton) => automaton !== undefined);
    if (said.length < read.length) return undefined;
    if (minLength > 0 || maxLength < Infinity) said.push(length(minLength, maxLength));
    if (values !== undefined) said.push(oneOf(values.filter((value) => typeof value === 'string')));
    if (excluded.length > 0) said.push(complement(oneOf(excluded.filter((value) => typeof value === 'string'))));
    return said;
  }

  define(production: Production): Production {
    const { reference, be } = this.declare();
    be(production);
    return reference;
  }

  #valueWriter() {
    return {
      ...this.maker,
      strings: this.#options.strings,
      value: (all: All) => this.value(all),
      define: (production: Production) => this.define(production),
      namesOf: (schema: Schema) => this.namesOf(schema),
    };
  }

  #alternative(keywords: Keywords, part: object | undefined): Production {
    if (keywords.values !== undefined) return this.#listed(keywords);
    const types = [...typesOf(keywords)];
    return either(...types.map((type) => this.#ofType(type, keywords, part)));
  }

  #listed(keywords: Keywords): Production {
    const { expansion, strings } = this.#options;
    this.#options.spend(keywords.values?.length ?? 0);
    const check = {
      expand: (all: All) => expansion.expand(all),
      fitsPattern: strings.fitsPattern,
      fitsFormat: strings.fitsFormat,
    };
    const fitting = (keywords.values ?? []).filter((value) => fits(value, { ...keywords, values: undefined }, check));
    return anyOfTexts(fitting.map((value) => JSON.stringify(value)));
  }

  #ofType(type: JsonType, keywords: Keywords, part: object | undefined): Production {
    const gap = (keyword: string): void => this.#options.onGap(keyword, part);
    switch (type) {
      case 'null':
        return keywords.excluded.includes(null) ? NEVER : rule('null');
      case 'boolean':
        return either(
          ...[true, false].filter((value) => !keywords.excluded.includes(value)).map((value) => text(String(value))),
        );
      case 'number':
        return this.#number(keywords, gap);
      case 'string':
        return this.#string(keywords, gap);
      case 'array':
        return this.#array(keywords, gap);
      case 'object':
        if (keywords.excluded.some((value) => typeof value === 'object' && value !== null)) gap('not');
        return writeObject(keywords, { writer: this.#valueWriter(), gap, isOpen: isOpenObject(keywords) });
    }
  }

  #number(keywords: Keywords, gap: (keyword: string) => void): Production {
    const range = rangeOf(keywords);
    const wholeDivisors = keywords.multipleOf.filter((divisor) => Number.isSafeInteger(divisor));
    if (wholeDivisors.length < keywords.multipleOf.length) gap('multipleOf');
    if (keywords.excluded.some((value) => typeof value === 'number')) gap('not');
    const divisor = wholeDivisors.reduce(leastCommonMultiple, 1);
    const isInteger = keywords.isInteger || wholeDivisors.length > 0;
    if (divisor === 1 && range.min === -Infinity && range.max === Infinity) {
      return rule(isInteger ? 'integer' : 'number');
    }
    const written = signedRanges(range).map(({ sign, ...bounds }) => {
      const numeral = numeralOf(numerals({ ...bounds, isInteger, multipleOf: divisor }), this.maker);
      if (numeral === undefined) gap('multipleOf');
      return sequence(text(sign), numeral ?? rule('integral'));
    });
    return either(...written);
  }

  #string(keywords: Keywords, gap: (keyword: string) => void): Production {
    const { strings } = this.#options;
    const parts: Automaton[] = [];
    const add = (keyword: string, automaton: Automaton | undefined): void => {
      if (automaton === undefined) gap(keyword);
      else parts.push(automaton);
    };
    for (const pattern of keywords.patterns) add('pattern', strings.pattern(pattern));
    for (const format of keywords.formats) add('format', strings.format(format));
    const excluded = keywords.excluded.filter((value) => typeof value === 'string');
    if (excluded.length > 0) parts.push(complement(oneOf(excluded)));
    const { minLength, maxLength } = keywords;
    if (minLength > maxLength) return NEVER;
    const hasLength = minLength > 0 || maxLength < Infinity;
    if (parts.length === 0) {
      if (!hasLength) return rule('string');
      const characters = repeatAtLength(rule('char'), { min: minLength, max: maxLength }, (one) => this.define(one));
      return sequence(text('"'), characters, text('"'));
    }
    const whole = together(hasLength ? [...parts, length(minLength, maxLength)] : parts);
    // Each state of several at once costs as much as one of each.
    const maker = { ...this.maker, spend: (steps: number) => this.maker.spend(steps * parts.length) };
    const written = whole && stringOf(whole, maker);
    if (written !== undefined) return written;
    gap(hasLength ? 'maxLength' : 'pattern');
    const shorter = together(parts);
    return (shorter && hasLength ? stringOf(shorter, maker) : undefined) ?? rule('string');
  }

  #array(keywords: Keywords, gap: (keyword: string) => void): Production {
    const { prefixItems, contains, minContains, uniqueItems } = keywords;
    if (keywords.excluded.some((value) => Array.isArray(value))) gap('not');
    // Every item is one of those that it has to contain.
    const wanted = minContains > 0 ? contains : [];
    const prefix = prefixItems.map((all) => this.value([...all, ...wanted]));
    const minItems = Math.max(keywords.minItems, minContains);
    const { maxItems } = keywords;
    if (uniqueItems && maxItems > 1) gap('uniqueItems');
    const space = rule('space');
    const isOpen = keywords.items !== undefined || prefix.length === 0 || minItems > prefix.length;
    const item = isOpen ? this.value([...(keywords.items ?? []), ...wanted]) : NEVER;
    const next = this.define(sequence(text(','), space, item));
    const rest = (written: number): Production =>
      isOpen
        ? repeatAtLength(next, { min: Math.max(0, minItems - written), max: Math.max(0, maxItems - written) }, (one) =>
            this.define(one),
          )
        : NOTHING;
    const shapes: Production[] = [];
    if (minItems === 0) shapes.push(NOTHING);
    // As long as it can be: shorter lists of a prefix are written only where an item of it is impossible.
    const [first, ...others] = prefix;
    if (maxItems >= 1 && maxItems >= minItems) {
      if (first === undefined) shapes.push(sequence(item, rest(1), space));
      else {
        const some = Math.min(prefix.length, maxItems);
        const followers = others.slice(0, some - 1).map((one) => sequence(text(','), space, one));
        shapes.push(sequence(first, ...followers, some < prefix.length ? NOTHING : rest(some), space));
      }
    }
    return sequence(text('['), space, either(...shapes), text(']'));
  }
}

interface Range {
  readonly min: number;
  readonly max: number;
  readonly isMinExclusive: boolean;
  readonly isMaxExclusive: boolean;
}

function rangeOf({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Keywords): Range {
  return {
    min: Math.max(minimum, exclusiveMinimum),
    max: Math.min(maximum, exclusiveMaximum),
    isMinExclusive: exclusiveMinimum >= minimum,
    isMaxExclusive: exclusiveMaximum <= maximum,
  };
}

type SignedRange = Pick<NumeralRange, 'min' | 'max'> & { readonly sign: '' | '-' };

/** A range as one of numbers without a sign, and one of those behind a minus. */
function signedRanges({ min, max, isMinExclusive, isMaxExclusive }: Range): readonly SignedRange[] {
  const low = min === -Infinity ? undefined : { value: Math.abs(min), isExclusive: isMinExclusive };
  const high = max === Infinity ? undefined : { value: Math.abs(max), isExclusive: isMaxExclusive };
  const ranges: SignedRange[] = [];
  if (max >= 0) ranges.push({ sign: '', min: min >= 0 ? low : undefined, max: high });
  if (min < 0) ranges.push({ sign: '-', min: max < 0 || (max === 0 && isMaxExclusive) ? high : undefined, max: low });
  return ranges;
}

function leastCommonMultiple(one: number, other: number): number {
  let [a, b] = [one, other];
  while (b !== 0) [a, b] = [b, a % b];
  return (one / a) * other;
}
