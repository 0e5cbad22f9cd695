/** The grammar's words for JSON (RFC 8259): white space within bounds, strings, numbers that are finite. Pure. */
import { usefulStates, type Automaton, type Spend } from './automaton.ts';
import {
  ANY_CHARACTER,
  charactersOf,
  characterSet,
  difference,
  has,
  intersection,
  type CharacterSet,
} from './character-set.ts';
import { either, NEVER, NOTHING, repeat, rule, sequence, set, text, type Production } from './grammar.ts';

/** What a string can't hold as it is. */
const ESCAPED = characterSet([0, 0x1f], [0x22, 0x22], [0x5c, 0x5c]);
const PLAIN = difference(ANY_CHARACTER, characterSet(...ESCAPED, [0x7f, 0x7f]));
const HEXADECIMAL = characterSet([0x30, 0x39], [0x41, 0x46], [0x61, 0x66]);
const DIGIT = characterSet([0x30, 0x39]);

/** Rules that any grammar of JSON may use. */
export const JSON_RULES: Readonly<Record<string, Production>> = {
  // One blank, or a new line and its indent: models that may write as much as they like sometimes never end.
  space: either(NOTHING, text(' '), sequence(text('\n'), repeat(set(charactersOf(' \t')), 0, 20))),
  char: either(
    set(PLAIN),
    sequence(
      text('\\'),
      either(
        set(charactersOf('"\\/bfnrt')),
        // No halves of pairs, which would count as characters of their own, and may stay alone.
        sequence(
          text('u'),
          either(
            sequence(set(difference(HEXADECIMAL, charactersOf('dD'))), repeat(set(HEXADECIMAL), 3, 3)),
            sequence(set(charactersOf('dD')), set(characterSet([0x30, 0x37])), repeat(set(HEXADECIMAL), 2, 2)),
          ),
        ),
      ),
    ),
  ),
  string: sequence(text('"'), repeat(rule('char'), 0, Infinity), text('"')),
  integral: either(text('0'), sequence(set(characterSet([0x31, 0x39])), repeat(set(DIGIT), 0, 14))),
  integer: sequence(repeat(text('-'), 0, 1), rule('integral')),
  fraction: sequence(text('.'), repeat(set(DIGIT), 1, 16)),
  exponent: sequence(set(charactersOf('eE')), repeat(set(charactersOf('+-')), 0, 1), repeat(set(DIGIT), 1, 2)),
  number: sequence(rule('integer'), repeat(rule('fraction'), 0, 1), repeat(rule('exponent'), 0, 1)),
  boolean: either(text('true'), text('false')),
  null: text('null'),
  value: either(...['object', 'array', 'string', 'number', 'boolean', 'null'].map(rule)),
  object: sequence(text('{'), rule('space'), repeat(rule('members'), 0, 1), text('}')),
  members: sequence(rule('member'), repeat(rule('next-member'), 0, Infinity), rule('space')),
  'next-member': sequence(text(','), rule('space'), rule('member')),
  member: sequence(rule('string'), text(':'), rule('space'), rule('value')),
  array: sequence(text('['), rule('space'), repeat(rule('items'), 0, 1), text(']')),
  items: sequence(rule('value'), repeat(rule('next-item'), 0, Infinity), rule('space')),
  'next-item': sequence(text(','), rule('space'), rule('value')),
};

/** The most states of one string or number: each is a rule. */
const MAX_STATES = 4000;

/** What the rules of an automaton are made with. */
export interface RuleMaker {
  /** Makes a rule whose content is given once its name is known. */
  readonly declare: () => { readonly reference: Production; readonly be: (production: Production) => void };
  readonly spend: Spend;
}

interface AutomatonRules extends RuleMaker {
  /** How a character is written. */
  readonly write: (on: CharacterSet) => Production;
  readonly end: Production;
}

/** @returns undefined where it has too many states; `NEVER` where nothing fits */
function automatonRules(automaton: Automaton, { write, end, declare, spend }: AutomatonRules): Production | undefined {
  const states = usefulStates(automaton, MAX_STATES, spend);
  if (states === undefined) return undefined;
  const rules = new Map([...states.keys()].map((state) => [state, declare()]));
  for (const [state, moves] of states) {
    const goingOn = moves.map(({ on, to }) => sequence(write(on), rules.get(to)?.reference ?? NEVER));
    rules.get(state)?.be(either(...(automaton.accepts(state) ? [end] : []), ...goingOn));
  }
  return rules.get(automaton.start)?.reference ?? NEVER;
}

/** A JSON string whose content the automaton accepts. @returns undefined where that has too many states */
export function stringOf(automaton: Automaton, maker: RuleMaker): Production | undefined {
  const inner = automatonRules(automaton, { write: writeInString, end: text('"'), ...maker });
  return inner && sequence(text('"'), inner);
}

/** Digits and the point, as they are. @returns undefined where that has too many states */
export function numeralOf(automaton: Automaton, maker: RuleMaker): Production | undefined {
  return automatonRules(automaton, { write: set, end: NOTHING, ...maker });
}

const SHORT_ESCAPES = [
  { code: 0x22, written: '\\"' },
  { code: 0x5c, written: '\\\\' },
  { code: 0x08, written: '\\b' },
  { code: 0x0c, written: '\\f' },
  { code: 0x0a, written: '\\n' },
  { code: 0x0d, written: '\\r' },
  { code: 0x09, written: '\\t' },
];
const WITHOUT_SHORT_ESCAPE = difference(characterSet([0, 0x1f]), charactersOf('\b\f\n\r\t'));

function writeInString(on: CharacterSet): Production {
  const plain = difference(on, ESCAPED);
  const short = SHORT_ESCAPES.filter(({ code }) => has(on, code));
  const long = intersection(on, WITHOUT_SHORT_ESCAPE).flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, index) => `\\u${(first + index).toString(16).padStart(4, '0')}`),
  );
  return either(
    ...(plain.length === 0 ? [] : [set(plain)]),
    ...short.map(({ written }) => text(written)),
    ...long.map(text),
  );
}
