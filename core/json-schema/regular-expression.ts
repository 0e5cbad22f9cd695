/**
 * The regular part of ECMA-262's expressions (with the flag `u`, as JSON Schema reads `pattern`) as an automaton. What is
 * not regular (back references, lookaround) or depends on tables of Unicode (`\p`) is not supported. Pure.
 *
 * A text is read between two marks, its start and its end, so that `^` and `$` are characters like any other.
 */
import { createNames, remembered, type Automaton, type Move, type Spend } from './automaton.ts';
import { ANY_CHARACTER, has, partition, type CharacterSet } from './character-set.ts';
import { parseExpression, END_MARK, START_MARK, type Expression } from './expression-parser.ts';

/** States before they are made deterministic; a repeated part counts as often as it is repeated. */
const MAX_PARTS = 4000;

/**
 * @param spend is told of the work, when the expression is read and whenever a state of it is made
 * @returns undefined for an expression that isn't supported, or is too large
 */
export function regularExpression(source: string, spend: Spend): Automaton | undefined {
  const expression = parseExpression(source);
  if (expression === undefined) return undefined;
  const any: Expression = { type: 'repeat', of: { type: 'set', set: ANY_CHARACTER }, min: 0, max: Infinity };
  const optional = (...parts: readonly Expression[]): Expression => ({
    type: 'either',
    of: [
      { type: 'sequence', of: [] },
      { type: 'sequence', of: parts },
    ],
  });
  const start: Expression = { type: 'set', set: [[START_MARK, START_MARK]] };
  const end: Expression = { type: 'set', set: [[END_MARK, END_MARK]] };
  const builder = new Builder();
  const last = builder.add({ type: 'sequence', of: [optional(start, any), expression, optional(any, end)] }, 0);
  return last === undefined ? undefined : deterministic(builder, last, spend);
}

/** Thompson's construction: numbered states, of which each either moves on one set or goes on to others for nothing. */
class Builder {
  readonly moves: { readonly on: CharacterSet; readonly to: number }[][] = [[]];
  readonly free: number[][] = [[]];

  #state(): number {
    this.free.push([]);
    return this.moves.push([]) - 1;
  }

  /** @returns the state after it, or undefined where there are too many */
  add(expression: Expression, from: number): number | undefined {
    if (this.moves.length > MAX_PARTS) return undefined;
    switch (expression.type) {
      case 'set': {
        const to = this.#state();
        this.moves[from]?.push({ on: expression.set, to });
        return to;
      }
      case 'sequence':
        return expression.of.reduce<number | undefined>(
          (at, part) => (at === undefined ? undefined : this.add(part, at)),
          from,
        );
      case 'either': {
        const ends = expression.of.map((part) => this.add(part, from));
        const to = this.#state();
        for (const end of ends) {
          if (end === undefined) return undefined;
          this.free[end]?.push(to);
        }
        return to;
      }
      case 'repeat':
        return this.#repeat(expression, from);
    }
  }

  #repeat({ of, min, max }: Extract<Expression, { type: 'repeat' }>, from: number): number | undefined {
    let at: number | undefined = from;
    for (let count = 0; count < min && at !== undefined; count += 1) at = this.add(of, at);
    if (at === undefined) return undefined;
    const end = this.#state();
    if (max === Infinity) {
      const loop = this.#state();
      this.free[at]?.push(loop);
      const again = this.add(of, loop);
      if (again === undefined) return undefined;
      this.free[again]?.push(loop);
      this.free[loop]?.push(end);
      return end;
    }
    for (let count = min; count < max && at !== undefined; count += 1) {
      this.free[at]?.push(end);
      // A state of its own, so that what an alternative leaves behind is not entered twice.
      const next = this.#state();
      this.free[at]?.push(next);
      at = this.add(of, next);
    }
    if (at === undefined) return undefined;
    this.free[at]?.push(end);
    return end;
  }
}

function deterministic({ moves, free }: Builder, last: number, spend: Spend): Automaton {
  const sets = createNames((states: readonly number[]) => states.join());
  const closed = (states: Iterable<number>): string => {
    const found = new Set<number>();
    const waiting = [...states];
    for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
      if (found.has(state)) continue;
      found.add(state);
      waiting.push(...(free[state] ?? []));
    }
    spend(found.size / 4);
    // Those that only lead on for nothing make no difference.
    const kept = [...found].filter((state) => state === last || (moves[state]?.length ?? 0) > 0);
    return sets.nameOf(kept.toSorted((a, b) => a - b));
  };
  const movesOf = (state: string) => (sets.find(state) ?? []).flatMap((one) => moves[one] ?? []);
  const on = (state: string, mark: number): string =>
    closed(movesOf(state).flatMap((move) => (has(move.on, mark) ? [move.to] : [])));
  return {
    start: on(closed([0]), START_MARK),
    moves: remembered((state) => {
      const going = movesOf(state).filter((move) => (move.on[0]?.[0] ?? START_MARK) < START_MARK);
      spend(going.length * 4);
      const next: Move[] = [];
      for (const { part, within } of partition(going.map((move) => move.on))) {
        next.push({ on: part, to: closed(within.flatMap((which) => going[which]?.to ?? [])) });
      }
      return next;
    }),
    accepts: remembered((state) => sets.find(on(state, END_MARK))?.includes(last) === true),
  };
}
