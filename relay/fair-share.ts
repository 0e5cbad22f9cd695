/**
 * Who has more than their share of what is taken, where one more comes. Each holder stands in groups within groups (an
 * address, and in it a tag): of the largest group the largest group in it, and of that the oldest holder. So whoever
 * holds much can't be in the way of whoever holds little. The work does not grow with how many hold something.
 */

/** Names of groups, the outermost first; as many for each holder. */
export type GroupPath = readonly string[];

export interface Crowding<Holder> {
  /** Who is to give way. */
  readonly holder: Holder;
  /** It is of the newcomer's own groups, which hold as much as any. */
  readonly isOwn: boolean;
}

export class FairShare<Holder> {
  readonly #paths = new Map<Holder, GroupPath>();
  readonly #root = new Group<Holder>();

  get size(): number {
    return this.#paths.size;
  }

  /** The oldest first. */
  holders(): Iterable<Holder> {
    return this.#paths.keys();
  }

  /** As the newest. Whoever holds already stays where they are. */
  add(holder: Holder, path: GroupPath): void {
    if (this.#paths.has(holder)) return;
    this.#paths.set(holder, path);
    this.#root.add(holder, path);
  }

  /** Does nothing for one that holds nothing. */
  delete(holder: Holder): void {
    const path = this.#paths.get(holder);
    if (path === undefined) return;
    this.#paths.delete(holder);
    this.#root.delete(holder, path);
  }

  /** How many the group holds, with all groups in it. */
  sizeOf(path: GroupPath): number {
    return this.#find(path)?.size ?? 0;
  }

  /** @param path of an innermost group */
  oldestIn(path: GroupPath): Holder | undefined {
    return this.#find(path)?.oldest;
  }

  /**
   * @param path of the newcomer
   * @returns nobody where no group holds more than the newcomer's would, and that one holds nothing
   */
  findCrowding(path: GroupPath): Crowding<Holder> | undefined {
    let group: Group<Holder> | undefined = this.#root;
    let isOwn = true;
    for (const name of path) {
      const [own, largest]: (Group<Holder> | undefined)[] = [group?.find(name), group?.largest];
      // With the newcomer, so that whoever takes another's place never holds more than that one is left with.
      isOwn = isOwn && (largest?.size ?? 0) <= (own?.size ?? 0) + 1;
      group = isOwn ? own : largest;
    }
    const holder = group?.oldest;
    return holder === undefined ? undefined : { holder, isOwn };
  }

  #find(path: GroupPath): Group<Holder> | undefined {
    let group: Group<Holder> | undefined = this.#root;
    for (const name of path) group = group?.find(name);
    return group;
  }
}

/** Holders, or groups of them. */
class Group<Holder> {
  size = 0;
  /** Of an innermost group, the oldest first. */
  readonly #holders = new Set<Holder>();
  readonly #groups = new Map<string, Group<Holder>>();
  /** By size. One holder at a time comes or goes, so that the largest size changes by one at most. */
  readonly #bySize: Set<Group<Holder>>[] = [];

  get oldest(): Holder | undefined {
    const [oldest] = this.#holders;
    return oldest;
  }

  /** Of those that are equally large, the one that has been so for longest. */
  get largest(): Group<Holder> | undefined {
    const [largest] = this.#bySize.at(-1) ?? [];
    return largest;
  }

  find(name: string): Group<Holder> | undefined {
    return this.#groups.get(name);
  }

  add(holder: Holder, [name, ...inner]: GroupPath): void {
    this.size += 1;
    if (name === undefined) {
      this.#holders.add(holder);
      return;
    }
    const group = this.#groups.get(name) ?? new Group<Holder>();
    this.#groups.set(name, group);
    this.#resize(group, () => group.add(holder, inner));
  }

  delete(holder: Holder, [name, ...inner]: GroupPath): void {
    this.size -= 1;
    if (name === undefined) {
      this.#holders.delete(holder);
      return;
    }
    const group = this.#groups.get(name);
    if (group === undefined) return;
    this.#resize(group, () => group.delete(holder, inner));
    if (group.size === 0) this.#groups.delete(name);
  }

  #resize(group: Group<Holder>, change: () => void): void {
    this.#bySize[group.size]?.delete(group);
    change();
    const equals = (this.#bySize[group.size] ??= new Set());
    if (group.size > 0) equals.add(group);
    if (this.#bySize.at(-1)?.size === 0) this.#bySize.pop();
  }
}
