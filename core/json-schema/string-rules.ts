/** What a schema says of strings, as automata: each pattern and format is read once for a schema. Pure. */
import { both, matches, remembered, type Automaton, type Spend } from './automaton.ts';
import type { FitsPattern } from './keywords.ts';
import { regularExpression } from './regular-expression.ts';
import { formatExpression } from './string-formats.ts';

export interface StringRules {
  /** @returns undefined for what can't be read */
  readonly pattern: (source: string) => Automaton | undefined;
  readonly format: (name: string) => Automaton | undefined;
  readonly fitsPattern: FitsPattern;
  readonly fitsFormat: FitsPattern;
}

/** Expressions longer than this are not read. */
const MAX_SOURCE_LENGTH = 2000;

/** They are few, and the same for every schema. */
const readFormat = remembered((expression) => ({ automaton: regularExpression(expression, () => undefined) }));

function format(name: string): Automaton | undefined {
  const expression = formatExpression(name);
  return expression === undefined ? undefined : readFormat(expression).automaton;
}

export function createStringRules(spend: Spend): StringRules {
  const read = remembered((source: string) => ({
    automaton: source.length > MAX_SOURCE_LENGTH ? undefined : regularExpression(source, spend),
  }));
  const pattern = (source: string): Automaton | undefined => read(source).automaton;
  const fitting =
    (find: (name: string) => Automaton | undefined): FitsPattern =>
    (name, value) => {
      const automaton = find(name);
      return automaton && matches(automaton, value);
    };
  return { pattern, format, fitsPattern: fitting(pattern), fitsFormat: fitting(format) };
}

/** Strings that fit all of it. @returns undefined for any string */
export function together(automata: readonly Automaton[]): Automaton | undefined {
  const [first, ...others] = automata;
  return first && others.reduce(both, first);
}
