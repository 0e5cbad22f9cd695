/** Reads the source of a regular expression (ECMA-262, flag `u`), as far as it is regular. Pure. */
import { ANY_CHARACTER, characterSet, charactersOf, difference, union, type CharacterSet } from './character-set.ts';

/** Beyond Unicode: they stand for the edges of the text. */
export const START_MARK = 0x110000;
export const END_MARK = 0x110001;

export type Expression =
  | { readonly type: 'set'; readonly set: CharacterSet }
  | { readonly type: 'sequence'; readonly of: readonly Expression[] }
  | { readonly type: 'either'; readonly of: readonly Expression[] }
  | { readonly type: 'repeat'; readonly of: Expression; readonly min: number; readonly max: number };

const DIGITS = characterSet([0x30, 0x39]);
const WORD = characterSet([0x30, 0x39], [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]);
/** ECMA-262 `WhiteSpace` and `LineTerminator`. */
const SPACE = union(charactersOf('\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff'), [[0x2000, 0x200a]]);
const LINE_ENDS = charactersOf('\n\r\u2028\u2029');

const CLASSES: Readonly<Record<string, CharacterSet>> = {
  d: DIGITS,
  D: difference(ANY_CHARACTER, DIGITS),
  w: WORD,
  W: difference(ANY_CHARACTER, WORD),
  s: SPACE,
  S: difference(ANY_CHARACTER, SPACE),
};
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 };

/** Repetitions beyond this make automata too large. */
const MAX_REPEAT = 1000;
/** Groups within groups. */
const MAX_DEPTH = 50;

/** Of the parser: what it can't read is not regular, or no expression. */
class NotRegular extends Error {
  override readonly name = 'NotRegular';
}

/** @returns undefined for what is not supported or no expression at all */
export function parseExpression(source: string): Expression | undefined {
  try {
    return new Parser(source).parse();
  } catch (error) {
    if (error instanceof NotRegular) return undefined;
    throw error;
  }
}

class Parser {
  readonly #characters: readonly string[];
  #at = 0;
  #depth = 0;

  constructor(source: string) {
    this.#characters = Array.from(source);
  }

  parse(): Expression {
    const expression = this.#alternatives();
    if (this.#at < this.#characters.length) throw new NotRegular();
    return expression;
  }

  #next(): string {
    const next = this.#characters[this.#at];
    if (next === undefined) throw new NotRegular();
    this.#at += 1;
    return next;
  }

  #skip(text: string): boolean {
    if (this.#characters.slice(this.#at, this.#at + text.length).join('') !== text) return false;
    this.#at += text.length;
    return true;
  }

  #alternatives(): Expression {
    const all = [this.#sequence()];
    while (this.#skip('|')) all.push(this.#sequence());
    return all.length === 1 && all[0] !== undefined ? all[0] : { type: 'either', of: all };
  }

  #sequence(): Expression {
    const parts: Expression[] = [];
    while (this.#at < this.#characters.length && !'|)'.includes(this.#characters[this.#at] ?? '')) {
      parts.push(this.#repeated(this.#atom()));
    }
    return { type: 'sequence', of: parts };
  }

  #atom(): Expression {
    const one = this.#next();
    switch (one) {
      case '^':
        return { type: 'set', set: [[START_MARK, START_MARK]] };
      case '$':
        return { type: 'set', set: [[END_MARK, END_MARK]] };
      case '.':
        return { type: 'set', set: difference(ANY_CHARACTER, LINE_ENDS) };
      case '(':
        return this.#group();
      case '[':
        return { type: 'set', set: this.#class() };
      case '\\':
        return { type: 'set', set: this.#escape() };
      default:
        if ('*+?{}]'.includes(one)) throw new NotRegular();
        return { type: 'set', set: charactersOf(one) };
    }
  }

  #group(): Expression {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new NotRegular();
    if (this.#skip('?') && !this.#skip(':')) {
      // A name is all that may follow: `(?<year>`, but neither `(?<=` nor `(?<!`, nor lookahead.
      if (!this.#skip('<') || '=!'.includes(this.#characters[this.#at] ?? '=')) throw new NotRegular();
      while (this.#next() !== '>');
    }
    const inner = this.#alternatives();
    if (!this.#skip(')')) throw new NotRegular();
    this.#depth -= 1;
    return inner;
  }

  #repeated(of: Expression): Expression {
    const bounds = this.#bounds();
    if (bounds === undefined) return of;
    // Lazy or greedy, the language is the same.
    this.#skip('?');
    if (this.#bounds() !== undefined) throw new NotRegular();
    return { type: 'repeat', of, ...bounds };
  }

  #bounds(): { min: number; max: number } | undefined {
    if (this.#skip('*')) return { min: 0, max: Infinity };
    if (this.#skip('+')) return { min: 1, max: Infinity };
    if (this.#skip('?')) return { min: 0, max: 1 };
    if (!this.#skip('{')) return undefined;
    const min = this.#number();
    const max = this.#skip(',') ? (this.#characters[this.#at] === '}' ? Infinity : this.#number()) : min;
    if (!this.#skip('}') || max < min) throw new NotRegular();
    return { min, max };
  }

  #number(): number {
    let digits = '';
    while (/^\d$/.test(this.#characters[this.#at] ?? '')) digits += this.#next();
    if (digits === '' || Number(digits) > MAX_REPEAT) throw new NotRegular();
    return Number(digits);
  }

  #class(): CharacterSet {
    const isNegated = this.#skip('^');
    const sets: CharacterSet[] = [];
    while (!this.#skip(']')) {
      const first = this.#classAtom();
      const isRange = this.#characters[this.#at] === '-' && this.#characters[this.#at + 1] !== ']';
      if (!isRange) {
        sets.push(first);
        continue;
      }
      this.#at += 1;
      sets.push(characterSet([single(first), single(this.#classAtom())]));
    }
    const all = union(...sets);
    return isNegated ? difference(ANY_CHARACTER, all) : all;
  }

  #classAtom(): CharacterSet {
    const one = this.#next();
    if (one !== '\\') return charactersOf(one);
    if (this.#skip('b')) return charactersOf('\b');
    return this.#skip('-') ? charactersOf('-') : this.#escape();
  }

  #escape(): CharacterSet {
    const one = this.#next();
    const named = CLASSES[one];
    if (named !== undefined) return named;
    const control = CONTROLS[one];
    if (control !== undefined) return [[control, control]];
    if (one === 'c') return charactersOf(String.fromCodePoint((this.#next().codePointAt(0) ?? 0) % 32));
    if (one === 'x') return this.#hexadecimal(2);
    if (one === 'u') return this.#skip('{') ? this.#hexadecimalUntilBrace() : this.#hexadecimal(4);
    // `\b`, `\B`, `\k`, `\p`, back references, and letters without a meaning.
    if (/^[\p{L}\d]$/u.test(one)) throw new NotRegular();
    return charactersOf(one);
  }

  #hexadecimal(digits: number): CharacterSet {
    const text = Array.from({ length: digits }, () => this.#next()).join('');
    const code = /^[\da-f]+$/i.test(text) ? Number.parseInt(text, 16) : Infinity;
    if (code > 0x10ffff) throw new NotRegular();
    // Half a pair: the other half follows as an escape of its own.
    if (code < 0xd800 || code > 0xdbff) return [[code, code]];
    if (!this.#skip('\\u')) throw new NotRegular();
    const low = single(this.#hexadecimal(4));
    const whole = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    return [[whole, whole]];
  }

  #hexadecimalUntilBrace(): CharacterSet {
    let digits = '';
    for (let one = this.#next(); one !== '}'; one = this.#next()) digits += one;
    const code = /^[\da-f]{1,6}$/i.test(digits) ? Number.parseInt(digits, 16) : Infinity;
    if (code > 0x10ffff) throw new NotRegular();
    return [[code, code]];
  }
}

/** An end of a range: `[\w-z]` is no expression with the flag `u`. */
function single(set: CharacterSet): number {
  const [range, ...others] = set;
  if (range === undefined || others.length > 0 || range[0] !== range[1]) throw new NotRegular();
  return range[0];
}
