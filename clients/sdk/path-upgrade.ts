/**
 * While calls take a longer path, a nearer one is looked for now and then. Calls start the search, and none waits for it.
 */
import type { ChosenPath, Paths } from './paths.ts';
import type { Transport } from './transport.ts';

const EVERY_MS = 60_000;

interface HomecomingOptions {
  readonly paths: Paths;
  readonly now: () => number;
  /** Takes one of them from now on, if it works. What it throws is of no interest. */
  readonly tryNearer: (nearer: readonly Transport[]) => Promise<void>;
}

export class PathUpgrade {
  readonly #options: HomecomingOptions;
  #path: ChosenPath | undefined;
  #lookedAtMs = 0;
  #isLooking = false;

  constructor(options: HomecomingOptions) {
    this.#options = options;
  }

  /** A call has been answered. */
  consider(): void {
    const { paths, now, tryNearer } = this.#options;
    if (paths.nearer.length === 0 || this.#isLooking) return;
    if (this.#path !== paths.current) {
      // It was found just now, in a round in which the nearer ones were tried first.
      this.#path = paths.current;
      this.#lookedAtMs = now();
    }
    if (now() - this.#lookedAtMs < EVERY_MS) return;
    this.#lookedAtMs = now();
    this.#isLooking = true;
    void tryNearer(paths.nearer)
      .catch(() => undefined)
      .finally(() => (this.#isLooking = false));
  }
}
