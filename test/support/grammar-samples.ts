/** Texts that a grammar lets pass, drawn at random: what a model with no opinion of its own would write under it. */
import type { Production } from '../../core/json-schema/grammar.ts';

type Grammar = ReadonlyMap<string, Production>;

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Beyond this depth the shortest way out is taken. */
const MAX_DEPTH = 20;

export function createSampler(grammar: Grammar, random: () => number): () => string {
  const cost = shortestWays(grammar);
  const whole = (below: number) => Math.floor(random() * below);
  const write = (production: Production, depth: number): string => {
    switch (production.type) {
      case 'text':
        return production.text;
      case 'set': {
        const [first, last] = production.set[whole(production.set.length)] ?? [0x3f, 0x3f];
        // Mostly what people write, now and then the rest of Unicode.
        const end = random() < 0.9 ? Math.max(first, Math.min(last, 0x7e)) : last;
        return String.fromCodePoint(first + whole(end - first + 1));
      }
      case 'rule':
        return write(grammar.get(production.name) ?? { type: 'text', text: '' }, depth + 1);
      case 'sequence':
        return production.of.map((part) => write(part, depth)).join('');
      case 'either': {
        const ways =
          depth < MAX_DEPTH ? production.of : production.of.toSorted((a, b) => cost(a) - cost(b)).slice(0, 1);
        const way = ways[whole(ways.length)];
        return way === undefined ? '' : write(way, depth);
      }
      case 'repeat': {
        const { min, max } = production;
        const count = depth < MAX_DEPTH ? Math.min(max, min + (random() < 0.5 ? whole(3) : whole(12))) : min;
        return Array.from({ length: count }, () => write(production.of, depth)).join('');
      }
    }
  };
  return () => write({ type: 'rule', name: 'root' }, 0);
}

/** How many rules the shortest text of a production goes through. */
function shortestWays(grammar: Grammar): (production: Production) => number {
  const known = new Map<string, number>();
  const cost = (production: Production): number => {
    switch (production.type) {
      case 'text':
      case 'set':
        return 0;
      case 'rule':
        return 1 + (known.get(production.name) ?? Infinity);
      case 'sequence':
        return production.of.reduce((sum, part) => sum + cost(part), 0);
      case 'either':
        return Math.min(...production.of.map(cost));
      case 'repeat':
        return production.min === 0 ? 0 : cost(production.of) * production.min;
    }
  };
  for (let hasChanged = true; hasChanged;) {
    hasChanged = false;
    for (const [name, production] of grammar) {
      const now = cost(production);
      if (now >= (known.get(name) ?? Infinity)) continue;
      known.set(name, now);
      hasChanged = true;
    }
  }
  return cost;
}
