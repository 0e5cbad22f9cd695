/**
 * Context-free grammars, and how llama.cpp writes them down (GBNF). Pure.
 *
 *     root ::= "{" space "\"age\":" space v1 "}"
 */
import type { CharacterSet } from './character-set.ts';

export type Production =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'set'; readonly set: CharacterSet }
  | { readonly type: 'sequence'; readonly of: readonly Production[] }
  | { readonly type: 'either'; readonly of: readonly Production[] }
  | { readonly type: 'rule'; readonly name: string }
  /** `of` is a set or a rule: llama.cpp writes it out as often as it may come. */
  | { readonly type: 'repeat'; readonly of: Production; readonly min: number; readonly max: number };

/** The rules by their names; the one named `root` is what is generated. */
export type Grammar = ReadonlyMap<string, Production>;

export const NOTHING: Production = { type: 'sequence', of: [] };
/** What can't be written at all. */
export const NEVER: Production = { type: 'either', of: [] };

export function text(value: string): Production {
  return { type: 'text', text: value };
}

export function sequence(...of: readonly Production[]): Production {
  return of.length === 1 && of[0] !== undefined ? of[0] : { type: 'sequence', of };
}

export function either(...of: readonly Production[]): Production {
  return of.length === 1 && of[0] !== undefined ? of[0] : { type: 'either', of };
}

export function rule(name: string): Production {
  return { type: 'rule', name };
}

export function set(characters: CharacterSet): Production {
  return { type: 'set', set: characters };
}

/** llama.cpp refuses more than 2,000 at once. */
const MAX_REPEAT = 1000;

/** @param of a set or a rule, or something small */
export function repeat(of: Production, min: number, max: number): Production {
  return { type: 'repeat', of, min, max };
}

/**
 * As often as one likes, in parts of a thousand.
 * @param define makes a rule of a production
 */
export function repeatAtLength(
  of: Production,
  { min, max }: { readonly min: number; readonly max: number },
  define: (production: Production) => Production,
): Production {
  const extra = max - min;
  if (max <= MAX_REPEAT || (max === Infinity && min <= MAX_REPEAT)) return repeat(of, min, max);
  const thousand = define(repeat(of, MAX_REPEAT, MAX_REPEAT));
  const exactly = (count: number): Production =>
    sequence(
      repeat(thousand, Math.floor(count / MAX_REPEAT), Math.floor(count / MAX_REPEAT)),
      repeat(of, count % MAX_REPEAT, count % MAX_REPEAT),
    );
  if (extra === 0) return exactly(min);
  if (extra === Infinity) return sequence(exactly(min), repeat(of, 0, Infinity));
  const whole = Math.floor(extra / MAX_REPEAT);
  const most = sequence(repeat(thousand, whole, whole), repeat(of, 0, extra % MAX_REPEAT));
  if (whole === 0) return sequence(exactly(min), most);
  const fewer = sequence(repeat(thousand, 0, whole - 1), repeat(of, 0, MAX_REPEAT - 1));
  return sequence(exactly(min), either(most, fewer));
}

/**
 * Without what can't be written, and without the rules that nothing leads to.
 * @returns undefined where nothing at all can be written
 */
export function pruned(grammar: Grammar): Grammar | undefined {
  const ending = endingRules(grammar);
  if (!ending.has('root')) return undefined;
  const kept = new Map<string, Production>();
  const waiting = ['root'];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const production = grammar.get(name);
    if (production === undefined || kept.has(name)) continue;
    const possible = onlyPossible(production, ending);
    kept.set(name, possible);
    waiting.push(...rulesIn(possible));
  }
  return kept;
}

/** The rules that come to an end: not those that contain themselves without a way out. */
function endingRules(grammar: Grammar): ReadonlySet<string> {
  const users = new Map<string, Set<string>>();
  for (const [name, production] of grammar) {
    for (const used of rulesIn(production)) {
      const known = users.get(used);
      if (known === undefined) users.set(used, new Set([name]));
      else known.add(name);
    }
  }
  const ending = new Set<string>();
  const waiting = [...grammar.keys()];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const production = grammar.get(name);
    if (production === undefined || ending.has(name) || !ends(production, ending)) continue;
    ending.add(name);
    waiting.push(...(users.get(name) ?? []));
  }
  return ending;
}

function ends(production: Production, ending: ReadonlySet<string>): boolean {
  switch (production.type) {
    case 'text':
      return true;
    case 'set':
      return production.set.length > 0;
    case 'sequence':
      return production.of.every((part) => ends(part, ending));
    case 'either':
      return production.of.some((part) => ends(part, ending));
    case 'repeat':
      return production.min === 0 || ends(production.of, ending);
    case 'rule':
      return ending.has(production.name);
  }
}

function onlyPossible(production: Production, ending: ReadonlySet<string>): Production {
  switch (production.type) {
    case 'sequence':
      return sequence(...production.of.map((part) => onlyPossible(part, ending)));
    case 'either':
      return either(...production.of.filter((part) => ends(part, ending)).map((part) => onlyPossible(part, ending)));
    case 'repeat':
      return ends(production.of, ending) ? { ...production, of: onlyPossible(production.of, ending) } : NOTHING;
    default:
      return production;
  }
}

function rulesIn(production: Production): readonly string[] {
  switch (production.type) {
    case 'rule':
      return [production.name];
    case 'repeat':
      return rulesIn(production.of);
    case 'sequence':
    case 'either':
      return production.of.flatMap(rulesIn);
    default:
      return [];
  }
}

/**
 * How many ways are open at once where most are: what the engine looks at for each token that it may write next.
 * @returns the largest number of any place in the grammar
 */
export function countOpenWays(grammar: Grammar): number {
  const known = new Map<string, Ways>();
  let most = 0;
  const waysOf = (production: Production): Ways => {
    const ways = countWays(production, waysOfRule, waysOf);
    most = Math.max(most, ways.count);
    return ways;
  };
  function waysOfRule(name: string): Ways {
    const found = known.get(name);
    if (found !== undefined) return found;
    // A rule that begins with itself adds nothing.
    known.set(name, { count: 0, isEmpty: false });
    const ways = waysOf(grammar.get(name) ?? NEVER);
    known.set(name, ways);
    return ways;
  }
  for (const name of grammar.keys()) waysOfRule(name);
  return most;
}

interface Ways {
  readonly count: number;
  /** Nothing may be written at all: what comes next is open, too. */
  readonly isEmpty: boolean;
}

function countWays(production: Production, ofRule: (name: string) => Ways, of: (part: Production) => Ways): Ways {
  switch (production.type) {
    case 'text':
      return { count: 1, isEmpty: production.text === '' };
    case 'set':
      return { count: 1, isEmpty: false };
    case 'rule':
      return ofRule(production.name);
    case 'repeat':
      return { count: of(production.of).count, isEmpty: production.min === 0 || of(production.of).isEmpty };
    case 'either': {
      const all = production.of.map(of);
      return { count: all.reduce((sum, { count }) => sum + count, 0), isEmpty: all.some(({ isEmpty }) => isEmpty) };
    }
    case 'sequence': {
      const all = production.of.map(of);
      const end = all.findIndex(({ isEmpty }) => !isEmpty);
      const open = end < 0 ? all : all.slice(0, end + 1);
      return { count: open.reduce((sum, { count }) => sum + count, 0), isEmpty: end < 0 };
    }
  }
}

/** In GBNF, the root first. */
export function printGrammar(grammar: Grammar): string {
  return [...grammar].map(([name, production]) => `${name} ::= ${print(production, false)}\n`).join('');
}

/** A grammar in GBNF that takes any of these texts as well, each from its start to its end. */
export function withAlternatives(gbnf: string, texts: readonly string[]): string {
  if (texts.length === 0) return gbnf;
  const others = either(rule('answer'), ...texts.map(text));
  return printGrammar(new Map([['root', others]])) + gbnf.replace(/^root ::=/, 'answer ::=');
}

function print(production: Production, isPart: boolean): string {
  switch (production.type) {
    case 'text':
      return `"${Array.from(production.text, (one) => escaped(one, '"\\')).join('')}"`;
    case 'set':
      return `[${production.set.map(printRange).join('')}]`;
    case 'rule':
      return production.name;
    case 'sequence': {
      const parts = production.of.map((part) => print(part, true)).filter((part) => part !== '');
      return parts.length === 0 && isPart ? '' : parts.length === 0 ? '""' : parts.join(' ');
    }
    case 'either': {
      const all = production.of.map((part) => print(part, false)).join(' | ');
      return isPart ? `(${all})` : all;
    }
    case 'repeat': {
      if (production.max === 0) return isPart ? '' : '""';
      const one = print(production.of, true);
      const of = ['sequence', 'repeat'].includes(production.of.type) ? `(${one})` : one;
      return `${of}${printCount(production)}`;
    }
  }
}

function printCount({ min, max }: { readonly min: number; readonly max: number }): string {
  if (max === Infinity) return min === 0 ? '*' : min === 1 ? '+' : `{${min},}`;
  if (min === 0 && max === 1) return '?';
  return min === max ? `{${min}}` : `{${min},${max}}`;
}

function printRange([first, last]: readonly [number, number]): string {
  const [from, to] = [first, last].map((code) => escaped(String.fromCodePoint(code), '[]^-\\'));
  return first === last ? `${from}` : `${from}-${to}`;
}

function escaped(one: string, special: string): string {
  const code = one.codePointAt(0) ?? 0;
  if (code >= 0x20 && code < 0x7f && !special.includes(one)) return one;
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`;
  if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, '0')}`;
  return `\\U${code.toString(16).padStart(8, '0')}`;
}
