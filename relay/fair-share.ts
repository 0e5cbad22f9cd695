/**
 * Who has more than their share of what is taken, where one more comes. Each holder stands in groups within groups (an
 * address, and in it a tag): of the largest group the largest group in it, and of that the oldest holder. So whoever
 * holds much can't be in the way of whoever holds little.
 */

/** Names of groups, the outermost first; as many for each holder. */
export type GroupPath = readonly string[];

export interface Crowding<Holder> {
  /** Who is to give way. */
  readonly holder: Holder;
  /** It is of the newcomer's own groups, which hold as much as any. */
  readonly isOwn: boolean;
}

interface Comer<Holder> {
  readonly path: GroupPath;
  readonly pathOf: (holder: Holder) => GroupPath;
}

/**
 * @param holders the oldest first
 * @returns nobody where no group holds more than the newcomer's would, and that one holds nothing
 */
export function findCrowding<Holder>(
  holders: Iterable<Holder>,
  { path, pathOf }: Comer<Holder>,
): Crowding<Holder> | undefined {
  let group = [...holders];
  let isOwn = true;
  for (const [level, own] of path.entries()) {
    const counts = countBy(group.map((holder) => pathOf(holder)[level] ?? ''));
    // With the newcomer, so that whoever takes another's place never holds more than that one is left with.
    const share: number = isOwn ? (counts.get(own) ?? 0) + 1 : 0;
    const [largest, size] = [...counts].reduce((most, one) => (one[1] > most[1] ? one : most), ['', 0]);
    isOwn = isOwn && size <= share;
    const chosen = isOwn ? own : largest;
    group = group.filter((holder) => pathOf(holder)[level] === chosen);
  }
  const [oldest] = group;
  return oldest === undefined ? undefined : { holder: oldest, isOwn };
}

function countBy(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
