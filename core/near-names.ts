/** Which known names somebody may have meant who typed another. */

/** Longer names are not compared: they were not typed, and comparing takes the product of both lengths. */
const MAX_LENGTH = 100;

/**
 * The nearest first, without regard to case: names that begin or go on as what was typed, then those that differ by
 * few letters.
 * @param most how many are wanted
 */
export function nearNames(typed: string, known: Iterable<string>, most = 3): readonly string[] {
  if (typed === '' || typed.length > MAX_LENGTH) return [];
  const wanted = typed.toLowerCase();
  return [...known]
    .map((name) => ({ name, distance: distanceBetween(wanted, name.toLowerCase()) }))
    .filter(({ distance }) => distance < Infinity)
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, most)
    .map(({ name }) => name);
}

/** A name that contains less than this of another says nothing about it. */
const MIN_SHARED_LENGTH = 3;

/** @returns `Infinity` for names that nobody would take for each other */
function distanceBetween(typed: string, name: string): number {
  if (name.length > MAX_LENGTH) return Infinity;
  const shorter = Math.min(typed.length, name.length);
  if (shorter >= MIN_SHARED_LENGTH && (name.startsWith(typed) || typed.startsWith(name))) return 0.5;
  const edits = countEdits(typed, name);
  if (edits <= Math.max(1, Math.floor(Math.max(typed.length, name.length) / 3))) return edits;
  return shorter >= MIN_SHARED_LENGTH && (name.includes(typed) || typed.includes(name)) ? MAX_LENGTH : Infinity;
}

/** Letters put in, left out, changed, or swapped with the next (optimal string alignment). */
function countEdits(from: string, to: string): number {
  let before: number[] = [];
  let above = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const isSame = from[i - 1] === to[j - 1];
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row.push(
        Math.min(
          (above[j] ?? 0) + 1,
          (row[j - 1] ?? 0) + 1,
          (above[j - 1] ?? 0) + (isSame ? 0 : 1),
          isSwapped ? (before[j - 2] ?? 0) + 1 : Infinity,
        ),
      );
    }
    [before, above] = [above, row];
  }
  return above[to.length] ?? 0;
}
