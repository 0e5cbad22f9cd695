/**
 * Many texts as one production that branches only where they differ: the engine follows every branch that is open, at
 * each token, and thousands of them cost it seconds. Pure.
 */
import { either, NOTHING, sequence, text, type Production } from './grammar.ts';

/** Deeper branches are written out beside each other: a list of "a", "aa", "aaa", … is as deep as it is long. */
const MAX_DEPTH = 100;

export function anyOfTexts(texts: Iterable<string>): Production {
  return branches(
    [...new Set(texts)].map((one) => Array.from(one)),
    { at: 0, depth: 0 },
  );
}

interface Place {
  /** The characters before it are the same in all of them. */
  readonly at: number;
  readonly depth: number;
}

function branches(texts: readonly (readonly string[])[], { at, depth }: Place): Production {
  const [first = [], ...others] = texts;
  const rest = (one: readonly string[]): Production => text(one.slice(at).join(''));
  if (others.length === 0) return texts.length === 0 ? either() : rest(first);
  if (depth >= MAX_DEPTH) return either(...texts.map(rest));
  const fork = firstDifference(texts, at);
  const groups = new Map<string | undefined, (readonly string[])[]>();
  for (const one of texts) {
    const group = groups.get(one[fork]);
    if (group === undefined) groups.set(one[fork], [one]);
    else group.push(one);
  }
  const parts = [...groups].map(([character, group]) =>
    character === undefined ? NOTHING : branches(group, { at: fork, depth: depth + 1 }),
  );
  return fork === at ? either(...parts) : sequence(text(first.slice(at, fork).join('')), either(...parts));
}

function firstDifference([first = [], ...others]: readonly (readonly string[])[], from: number): number {
  let at = from;
  while (at < first.length && others.every((one) => one[at] === first[at])) at += 1;
  return at;
}
