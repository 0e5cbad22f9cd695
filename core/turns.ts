/**
 * One thread for everybody: work that takes long is cut into pieces, and of all such pieces one is done in each turn of
 * the event loop. So a turn is as long as one piece, however many have one to do, and they take turns in the order in
 * which they ask.
 */
export type TakeTurn = () => Promise<void>;

/** @param nextTurn calls back once in a later turn, as `setImmediate` does */
export function createTurns(nextTurn: (run: () => void) => unknown): TakeTurn {
  const waiting = new Set<() => void>();
  const advance = (): void => {
    const [first] = waiting;
    if (first === undefined) return;
    waiting.delete(first);
    if (waiting.size > 0) nextTurn(advance);
    first();
  };
  return () =>
    new Promise((resolve) => {
      waiting.add(resolve);
      if (waiting.size === 1) nextTurn(advance);
    });
}

/** Of this thread's event loop. */
export const takeTurn = createTurns(setImmediate);
