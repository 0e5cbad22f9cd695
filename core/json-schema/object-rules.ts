/**
 * Objects: the named properties in the schema's order, then others where the schema asks for them. How many were
 * written is counted as far as a bound needs it. Pure.
 */
import { complement, matches, oneOf, type Automaton } from './automaton.ts';
import { either, NEVER, NOTHING, repeat, rule, sequence, text, type Production } from './grammar.ts';
import { stringOf, type RuleMaker } from './json-text.ts';
import type { All, Keywords } from './keywords.ts';
import type { Schema } from './references.ts';
import { together, type StringRules } from './string-rules.ts';
import { schemasOfProperty } from './value-check.ts';

/** Properties that are counted one by one. */
const MAX_COUNTED = 200;

/** What writes the rules of values. */
interface ValueWriter extends RuleMaker {
  readonly strings: StringRules;
  readonly value: (all: All) => Production;
  readonly define: (production: Production) => Production;
  readonly namesOf: (schema: Schema) => readonly Automaton[] | undefined;
}

interface Scope {
  readonly writer: ValueWriter;
  readonly gap: (keyword: string) => void;
  /** Whether properties that nothing names may be written. */
  readonly isOpen: boolean;
}

interface Property {
  readonly production: Production;
  readonly isRequired: boolean;
}

export function writeObject(keywords: Keywords, scope: Scope): Production {
  const { writer, gap, isOpen } = scope;
  const isPlain = isOpen && keywords.properties.size + keywords.required.size === 0 && isUnconstrained(keywords);
  if (isPlain) return rule('object');
  const names = propertyNames(keywords, scope);
  const properties = namedProperties(keywords, { ...scope, names });
  const member = isOpen ? writer.define(otherMember(keywords, { ...scope, names })) : NEVER;
  const { minProperties, maxProperties } = keywords;
  const bounds = Math.max(minProperties, maxProperties === Infinity ? 0 : maxProperties);
  if (bounds > MAX_COUNTED) gap(maxProperties === Infinity ? 'minProperties' : 'maxProperties');
  const required = properties.filter(({ isRequired }) => isRequired).length;
  // Two others may have the same name, and then count once.
  if (isOpen && minProperties > properties.length + 1) gap('minProperties');
  else if (isOpen && minProperties > required + 1) gap('minProperties');
  const members = new Members({ writer, properties, member, isOpen, minProperties, maxProperties, bounds });
  return sequence(text('{'), rule('space'), members.from(0, 0), text('}'));
}

function isUnconstrained(keywords: Keywords): boolean {
  return (
    keywords.patternProperties.length + keywords.propertyNames.length === 0 &&
    (keywords.additional ?? []).every((schema) => schema === true) &&
    keywords.minProperties === 0 &&
    keywords.maxProperties === Infinity
  );
}

/** The names that `propertyNames` allows; undefined for any. */
function propertyNames({ propertyNames: all }: Keywords, { writer, gap }: Scope): Automaton | undefined {
  const automata: Automaton[] = [];
  for (const schema of all) {
    const names = writer.namesOf(schema);
    if (names === undefined) gap('propertyNames');
    else automata.push(...names);
  }
  return together(automata);
}

type Named = Scope & { readonly names: Automaton | undefined };

function namedProperties(keywords: Keywords, { writer, gap, names }: Named): readonly Property[] {
  const all = [...new Set([...keywords.properties.keys(), ...keywords.required])];
  return all.map((name) => {
    const { strings } = writer;
    for (const [pattern] of keywords.patternProperties) {
      if (strings.pattern(pattern) === undefined) gap('patternProperties');
    }
    const isAllowed = names === undefined || matches(names, name);
    const value = isAllowed ? writer.value(schemasOfProperty(name, keywords, strings)) : NEVER;
    const production = sequence(text(JSON.stringify(name)), text(':'), rule('space'), value);
    return { production: writer.define(production), isRequired: keywords.required.has(name) };
  });
}

/** A member that no property names, with what the patterns of its name say. */
function otherMember(keywords: Keywords, { writer, gap, names }: Named): Production {
  const { strings } = writer;
  const named = [...keywords.properties.keys(), ...keywords.required];
  const unnamed = named.length === 0 ? [] : [complement(oneOf(named))];
  const allowed = names === undefined ? unnamed : [...unnamed, names];
  const patterned: { readonly keys: Automaton; readonly all: All }[] = [];
  for (const [source, all] of keywords.patternProperties) {
    const keys = strings.pattern(source);
    if (keys === undefined) gap('patternProperties');
    else patterned.push({ keys, all });
  }
  // A name that fits two patterns is not written.
  const members = patterned.map(({ keys, all }) => ({
    keys: [
      ...allowed,
      keys,
      ...patterned.filter((other) => other.keys !== keys).map((other) => complement(other.keys)),
    ],
    all,
  }));
  // Where patterns are all that is said, what matches none of them is not written.
  const isRestWritten = keywords.additional !== undefined || patterned.length === 0;
  if (isRestWritten) {
    members.push({
      keys: [...allowed, ...patterned.map(({ keys }) => complement(keys))],
      all: keywords.additional ?? [],
    });
  }
  return either(
    ...members.map(({ keys, all }) => {
      const automaton = together(keys);
      const written = automaton === undefined ? rule('string') : stringOf(automaton, writer);
      if (written === undefined) gap('patternProperties');
      return sequence(written ?? NEVER, text(':'), rule('space'), writer.value(all));
    }),
  );
}

interface MembersOptions {
  readonly writer: ValueWriter;
  readonly properties: readonly Property[];
  readonly member: Production;
  readonly isOpen: boolean;
  readonly minProperties: number;
  readonly maxProperties: number;
  /** Counting further makes no difference. */
  readonly bounds: number;
}

/** What may follow after so many of the properties were passed, and so many written. */
class Members {
  readonly #options: MembersOptions;
  readonly #rules = new Map<string, Production>();

  constructor(options: MembersOptions) {
    this.#options = options;
  }

  from(passed: number, written: number): Production {
    const { writer, properties, bounds } = this.#options;
    const count = Math.min(written, Math.max(1, Math.min(bounds, MAX_COUNTED)));
    const property = properties[passed];
    if (property === undefined) return this.#others(count);
    const key = `${passed},${count}`;
    const known = this.#rules.get(key);
    if (known !== undefined) return known;
    const { reference, be } = writer.declare();
    this.#rules.set(key, reference);
    const withIt =
      count >= this.#options.maxProperties
        ? NEVER
        : sequence(separator(count), property.production, this.from(passed + 1, written + 1));
    be(property.isRequired ? withIt : either(withIt, this.from(passed + 1, written)));
    return reference;
  }

  #others(count: number): Production {
    const { member, isOpen, minProperties, maxProperties } = this.#options;
    const space = rule('space');
    const end = count === 0 ? NOTHING : space;
    const missing = Math.max(0, minProperties - count);
    if (!isOpen) return missing === 0 ? end : NEVER;
    const room = maxProperties - count;
    const next = repeat(this.#nextMember(), Math.max(0, missing - 1), room - 1);
    const some = room < Math.max(1, missing) ? NEVER : sequence(separator(count), member, next, space);
    return missing === 0 ? either(end, some) : some;
  }

  #nextMember(): Production {
    const known = this.#rules.get('next');
    if (known !== undefined) return known;
    const { writer, member } = this.#options;
    const next = writer.define(sequence(separator(1), member));
    this.#rules.set('next', next);
    return next;
  }
}

function separator(count: number): Production {
  return count === 0 ? NOTHING : sequence(text(','), rule('space'));
}
