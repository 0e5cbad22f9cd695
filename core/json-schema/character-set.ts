/** Sets of Unicode code points, as ranges in order that neither touch nor overlap. Pure. */

/** First and last. */
type Range = readonly [number, number];
export type CharacterSet = readonly Range[];

const LAST = 0x10ffff;

/** Whatever a JSON string can hold and UTF-8 can write: everything but surrogates. */
export const ANY_CHARACTER: CharacterSet = [
  [0, 0xd7ff],
  [0xe000, LAST],
];

export function characterSet(...ranges: readonly Range[]): CharacterSet {
  const sorted = ranges.filter(([first, last]) => first <= last).toSorted(([a], [b]) => a - b);
  const merged: [number, number][] = [];
  for (const [first, last] of sorted) {
    const before = merged.at(-1);
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

/** The set of the characters of a text. */
export function charactersOf(text: string): CharacterSet {
  return characterSet(...Array.from(text, (one): Range => [one.codePointAt(0) ?? 0, one.codePointAt(0) ?? 0]));
}

export function union(...sets: readonly CharacterSet[]): CharacterSet {
  return characterSet(...sets.flat());
}

export function intersection(one: CharacterSet, other: CharacterSet): CharacterSet {
  const shared: Range[] = [];
  for (let at = 0, from = 0; at < one.length && from < other.length;) {
    const [left, right] = [one[at], other[from]];
    if (left === undefined || right === undefined) break;
    const [first, last] = [Math.max(left[0], right[0]), Math.min(left[1], right[1])];
    if (first <= last) shared.push([first, last]);
    if (left[1] < right[1]) at += 1;
    else from += 1;
  }
  return shared;
}

/** What of `one` is not in `other`. */
export function difference(one: CharacterSet, other: CharacterSet): CharacterSet {
  const gaps: Range[] = [];
  let from = 0;
  for (const [first, last] of other) {
    gaps.push([from, first - 1]);
    from = last + 1;
  }
  return intersection(one, [...gaps, [from, Infinity]]);
}

export function has(set: CharacterSet, character: number): boolean {
  return set.some(([first, last]) => first <= character && character <= last);
}

/** Cuts sets that may overlap into parts that don't, each part with the indexes of the sets it lies in. */
export function* partition(
  sets: readonly CharacterSet[],
): Generator<{ readonly part: CharacterSet; readonly within: readonly number[] }> {
  const edges = sets.flatMap((set, which) =>
    set.flatMap(([first, last]) => [
      { at: first, which, isStart: true },
      { at: last + 1, which, isStart: false },
    ]),
  );
  const parts = new Map<string, { ranges: Range[]; within: readonly number[] }>();
  const open = new Set<number>();
  let from = 0;
  for (const { at, which, isStart } of edges.toSorted((a, b) => a.at - b.at)) {
    if (at > from && open.size > 0) {
      const within = [...open].toSorted((a, b) => a - b);
      const known = parts.get(within.join());
      if (known === undefined) parts.set(within.join(), { ranges: [[from, at - 1]], within });
      else known.ranges.push([from, at - 1]);
    }
    from = at;
    if (isStart) open.add(which);
    else open.delete(which);
  }
  for (const { ranges, within } of parts.values()) yield { part: characterSet(...ranges), within };
}
