/**
 * Work over a list that a caller made as long as it liked: many steps, each of which is nothing. Whoever does it leaves
 * off at each `yield`, and whoever has it done decides when the thread is somebody else's for a while.
 */
import { takeTurn, type TakeTurn } from './turns.ts';

export type Steps<Result> = Generator<undefined, Result, undefined>;

/** What is done in one go. A step is not cut in two, so a turn may be as much longer as the longest step is. */
const SLICE_MS = 5;

interface Turns {
  readonly takeTurn: TakeTurn;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
}

const OF_THIS_THREAD: Turns = { takeTurn, elapsed: () => performance.now() };

/**
 * Does all steps, in turns of the event loop. What takes no longer than one turn takes part of this one.
 * @throws what a step throws
 */
export async function inTurns<Result>(steps: Steps<Result>, turns: Turns = OF_THIS_THREAD): Promise<Result> {
  let beganAtMs = turns.elapsed();
  for (;;) {
    const step = steps.next();
    if (turns.elapsed() - beganAtMs >= SLICE_MS) {
      await turns.takeTurn();
      beganAtMs = turns.elapsed();
    }
    if (step.done === true) return step.value;
  }
}

/** Does all steps at once. @throws what a step throws */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** What `items.map(make)` is, a step for each item. */
export function* mapped<Item, Made>(items: readonly Item[], make: (item: Item, index: number) => Made): Steps<Made[]> {
  const made: Made[] = [];
  for (const [index, item] of items.entries()) {
    made.push(make(item, index));
    yield;
  }
  return made;
}
