/**
 * Deterministic automata over the characters of a string: what patterns, formats, lengths and excluded names come down
 * to, so that any of them can hold at once. A state is a text. Pure; what they read is read once, in linear time.
 */
import { ANY_CHARACTER, difference, has, intersection, union, type CharacterSet } from './character-set.ts';

export interface Move {
  readonly on: CharacterSet;
  readonly to: string;
}

export interface Automaton {
  readonly start: string;
  /** The sets of a state's moves don't overlap. */
  readonly moves: (state: string) => readonly Move[];
  readonly accepts: (state: string) => boolean;
}

/** Told of each step of work; throws where all of them are too many. */
export type Spend = (steps: number) => void;

export function matches(automaton: Automaton, text: string): boolean {
  let state = automaton.start;
  for (const one of text) {
    const character = one.codePointAt(0) ?? 0;
    const move = automaton.moves(state).find(({ on }) => has(on, character));
    if (move === undefined) return false;
    state = move.to;
  }
  return automaton.accepts(state);
}

/** Short names for states that are made of something. */
export function createNames<Made>(textOf: (made: Made) => string): {
  readonly nameOf: (made: Made) => string;
  readonly find: (name: string) => Made | undefined;
} {
  const names = new Map<string, string>();
  const made = new Map<string, Made>();
  return {
    nameOf(one) {
      const text = textOf(one);
      const known = names.get(text);
      if (known !== undefined) return known;
      const name = String(names.size);
      names.set(text, name);
      made.set(name, one);
      return name;
    },
    find: (name) => made.get(name),
  };
}

/** What every one of them accepts. */
export function both(one: Automaton, other: Automaton): Automaton {
  const pairs = createNames(([a, b]: readonly [string, string]) => `${a} ${b}`);
  return {
    start: pairs.nameOf([one.start, other.start]),
    moves: remembered((state) => {
      const [a, b] = pairs.find(state) ?? ['', ''];
      return one.moves(a).flatMap((left) =>
        other.moves(b).flatMap((right) => {
          const on = intersection(left.on, right.on);
          return on.length === 0 ? [] : [{ on, to: pairs.nameOf([left.to, right.to]) }];
        }),
      );
    }),
    accepts: (state) => {
      const [a, b] = pairs.find(state) ?? ['', ''];
      return one.accepts(a) && other.accepts(b);
    },
  };
}

const ANYTHING_ELSE = 'else';

/** What it does not accept. */
export function complement(automaton: Automaton): Automaton {
  return {
    start: automaton.start,
    moves: remembered((state) => {
      const moves = state === ANYTHING_ELSE ? [] : automaton.moves(state);
      const others = difference(ANY_CHARACTER, union(...moves.map(({ on }) => on)));
      return others.length === 0 ? moves : [...moves, { on: others, to: ANYTHING_ELSE }];
    }),
    accepts: (state) => state === ANYTHING_ELSE || !automaton.accepts(state),
  };
}

/** Exactly these texts. */
export function oneOf(texts: Iterable<string>): Automaton {
  const all = new Set(texts);
  const next = new Map<string, Set<string>>();
  for (const text of all) {
    let read = '';
    for (const one of text) {
      const known = next.get(read);
      if (known === undefined) next.set(read, new Set([one]));
      else known.add(one);
      read += one;
    }
  }
  return {
    start: '',
    moves: (read) =>
      [...(next.get(read) ?? [])].map((one) => {
        const character = one.codePointAt(0) ?? 0;
        return { on: [[character, character]], to: read + one };
      }),
    accepts: (read) => all.has(read),
  };
}

/** Texts of so many characters (code points, as JSON Schema counts). */
export function length(min: number, max: number): Automaton {
  const last = Number.isFinite(max) ? max : min;
  return {
    start: '0',
    moves: (state) => {
      const count = Number(state);
      if (count >= max) return [];
      return [{ on: ANY_CHARACTER, to: String(Math.min(count + 1, last)) }];
    },
    accepts: (state) => Number(state) >= min,
  };
}

/**
 * The states that lie on a way from the start to an end, each with its moves to others of them.
 * @param spend is told of the work, and throws where it is too much
 * @returns undefined where there are more than `most` states
 */
export function usefulStates(
  automaton: Automaton,
  most: number,
  spend: Spend,
): ReadonlyMap<string, readonly Move[]> | undefined {
  const found = new Map<string, readonly Move[]>();
  const waiting = [automaton.start];
  for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
    if (found.has(state)) continue;
    if (found.size >= most) return undefined;
    const moves = automaton.moves(state);
    spend(1 + moves.length);
    found.set(state, moves);
    waiting.push(...moves.map(({ to }) => to));
  }
  const ending = endingStates(found, automaton.accepts);
  return new Map(
    [...found]
      .filter(([state]) => ending.has(state))
      .map(([state, moves]) => [state, moves.filter(({ to }) => ending.has(to))]),
  );
}

/** Those from which an end can be reached. */
function endingStates(
  states: ReadonlyMap<string, readonly Move[]>,
  accepts: (state: string) => boolean,
): ReadonlySet<string> {
  const cameFrom = new Map<string, string[]>();
  for (const [state, moves] of states) {
    for (const { to } of moves) {
      const before = cameFrom.get(to);
      if (before === undefined) cameFrom.set(to, [state]);
      else before.push(state);
    }
  }
  const ending = new Set<string>();
  const waiting = [...states.keys()].filter(accepts);
  for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
    if (ending.has(state)) continue;
    ending.add(state);
    waiting.push(...(cameFrom.get(state) ?? []));
  }
  return ending;
}

export function remembered<Result>(make: (state: string) => Result): (state: string) => Result {
  const made = new Map<string, Result>();
  return (state) => {
    const known = made.get(state);
    if (known !== undefined) return known;
    const result = make(state);
    made.set(state, result);
    return result;
  };
}
