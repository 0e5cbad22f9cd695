/** A binary heap: which of many comes first, found with work that hardly grows with how many there are. */

export class PriorityQueue<Item> {
  readonly #rankOf: (item: Item) => number;
  /** None ranks lower than the one at half its place. */
  readonly #heap: Item[] = [];

  /** @param rankOf must not change for an item in the queue, but for the first, of which `demoteFirst` is told */
  constructor(rankOf: (item: Item) => number) {
    this.#rankOf = rankOf;
  }

  /** The one with the lowest rank. */
  get first(): Item | undefined {
    return this.#heap[0];
  }

  push(item: Item): void {
    let at = this.#heap.length;
    while (at > 0) {
      const above = (at - 1) >>> 1;
      if (this.#rankAt(above) <= this.#rankOf(item)) break;
      this.#move(above, at);
      at = above;
    }
    this.#heap[at] = item;
  }

  removeFirst(): void {
    const last = this.#heap.pop();
    if (last !== undefined && this.#heap.length > 0) this.#sink(last);
  }

  /** The rank of the first is higher now. */
  demoteFirst(): void {
    const [first] = this.#heap;
    if (first !== undefined) this.#sink(first);
  }

  /** Puts it in the place of the first, or below. */
  #sink(item: Item): void {
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const below = this.#rankAt(left + 1) < this.#rankAt(left) ? left + 1 : left;
      if (this.#rankAt(below) >= this.#rankOf(item)) break;
      this.#move(below, at);
      at = below;
    }
    this.#heap[at] = item;
  }

  #move(from: number, to: number): void {
    const item = this.#heap[from];
    if (item !== undefined) this.#heap[to] = item;
  }

  #rankAt(at: number): number {
    const item = this.#heap[at];
    return item === undefined ? Infinity : this.#rankOf(item);
  }
}
