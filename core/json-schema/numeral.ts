/**
 * Decimal numerals without a sign and without an exponent, between two bounds, as an automaton: digit by digit it is
 * known whether what was read is less than a bound's digits, more, or as yet the same. Pure.
 */
import { remembered, type Automaton, type Move } from './automaton.ts';

/** How many digits stand before the point, and how many behind it: more than these a double does not tell apart. */
export const MAX_DIGITS = 15;

export interface Bound {
  /** Not negative. */
  readonly value: number;
  readonly isExclusive: boolean;
}

export interface NumeralRange {
  readonly min?: Bound | undefined;
  readonly max?: Bound | undefined;
  /** Without a fraction; and then what it is a multiple of. */
  readonly isInteger: boolean;
  readonly multipleOf?: number | undefined;
}

/** What was read, against the digits of a bound. */
type Order = '<' | '=' | '>';

interface State {
  /** Digits read before the point; at the point and behind it, of the fraction. */
  readonly count: number;
  readonly isFraction: boolean;
  readonly isZero: boolean;
  readonly min: Order;
  readonly max: Order;
  readonly remainder: number;
}

const START: State = { count: 0, isFraction: false, isZero: false, min: '=', max: '=', remainder: 0 };

export function numerals(range: NumeralRange): Automaton {
  const min = digitsOf(range.min?.value ?? 0);
  const max = range.max && digitsOf(range.max.value);
  const divisor = range.multipleOf ?? 1;
  const states = new Map<string, State>();
  const nameOf = (state: State): string => {
    const name = Object.values(state).join();
    states.set(name, state);
    return name;
  };
  const stateOf = (name: string): State => states.get(name) ?? START;
  return {
    start: nameOf(START),
    moves: remembered((name) => {
      const state = stateOf(name);
      const moves: Move[] = [];
      for (let digit = 0; digit <= 9; digit += 1) {
        const next = afterDigit(state, digit, { min, max, divisor });
        if (next !== undefined) moves.push({ on: [[0x30 + digit, 0x30 + digit]], to: nameOf(next) });
      }
      const hasPoint = !range.isInteger && !state.isFraction && state.count > 0;
      if (hasPoint) moves.push({ on: [[0x2e, 0x2e]], to: nameOf(atPoint(state, min, max)) });
      return moves;
    }),
    accepts: (name) => isWithin(stateOf(name), { range, min, max }),
  };
}

interface Digits {
  readonly whole: string;
  readonly fraction: string;
}

interface Against {
  readonly min: Digits;
  readonly max: Digits | undefined;
  readonly divisor: number;
}

function afterDigit(state: State, digit: number, { min, max, divisor }: Against): State | undefined {
  if (state.count >= MAX_DIGITS || (!state.isFraction && state.isZero)) return undefined;
  const compare = (order: Order, digits: Digits | undefined): Order => {
    const theirs = (state.isFraction ? digits?.fraction : digits?.whole)?.[state.count] ?? '0';
    if (order !== '=' || digits === undefined) return order;
    return digit < Number(theirs) ? '<' : digit > Number(theirs) ? '>' : '=';
  };
  return {
    count: state.count + 1,
    isFraction: state.isFraction,
    isZero: state.count === 0 && digit === 0 && !state.isFraction,
    min: compare(state.min, min),
    max: compare(state.max, max),
    remainder: (state.remainder * 10 + digit) % divisor,
  };
}

/** Here the number of digits before the point is known, and counts for more than what they are. */
function atPoint(state: State, min: Digits, max: Digits | undefined): State {
  return {
    count: 0,
    isFraction: true,
    isZero: false,
    min: byLength(state, min, state.min),
    max: max === undefined ? '<' : byLength(state, max, state.max),
    remainder: 0,
  };
}

function byLength(state: State, { whole }: Digits, order: Order): Order {
  if (state.count !== whole.length) return state.count < whole.length ? '<' : '>';
  return order;
}

interface Within {
  readonly range: NumeralRange;
  readonly min: Digits;
  readonly max: Digits | undefined;
}

function isWithin(state: State, { range, min, max }: Within): boolean {
  if (state.count === 0 || state.remainder !== 0) return false;
  const { isFraction } = state;
  const ended = isFraction ? state : { ...atPoint(state, min, max), count: 0 };
  // Digits of a bound that nothing was read against.
  const isLess = (digits: Digits): boolean => /[1-9]/.test(digits.fraction.slice(ended.count));
  const low: Order = ended.min === '=' && isLess(min) ? '<' : ended.min;
  const high: Order = max !== undefined && ended.max === '=' && isLess(max) ? '<' : ended.max;
  const isEnough = low === '>' || (low === '=' && range.min?.isExclusive !== true);
  return isEnough && (max === undefined || high === '<' || (high === '=' && range.max?.isExclusive !== true));
}

/** All digits of a number, of which JavaScript prints large and small ones with an exponent. */
function digitsOf(value: number): Digits {
  const [mantissa = '0', exponent = '0'] = value.toString().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const point = whole.length + Number(exponent);
  const digits = `${'0'.repeat(Math.max(0, -point))}${whole}${fraction}`.padEnd(Math.max(point, 0), '0');
  const at = Math.max(0, point);
  return { whole: digits.slice(0, at).replace(/^0+(?=\d)/, '') || '0', fraction: digits.slice(at) };
}
