import { expect, test } from 'vitest';
import { createTurns } from '../../core/turns.ts';

test('of all who ask one is let in at a time, in a turn of its own and in the order in which they asked', async () => {
  const queued: (() => void)[] = [];
  const takeTurn = createTurns((run) => queued.push(run));
  const seen: string[] = [];
  const worker = async (name: string): Promise<void> => {
    for (let piece = 1; piece <= 2; piece += 1) {
      await takeTurn();
      seen.push(`${name}${piece}`);
    }
  };
  const all = Promise.all([worker('a'), worker('b'), worker('c')]);
  for (let turn = 1; turn <= 6; turn += 1) {
    expect(queued).toHaveLength(1);
    queued.shift()?.();
    await new Promise(setImmediate);
    expect(seen).toHaveLength(turn);
  }
  await all;
  expect(seen).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'c2']);
  expect(queued).toEqual([]);
});
