import { expect, test } from 'vitest';
import { atOnce, inTurns, mapped, type Steps } from '../../core/steps.ts';

/** Five steps, each of which takes so long on a clock that nothing else moves. */
function work(stepMs: number) {
  let nowMs = 0;
  let turns = 0;
  const longest = { ms: 0, sinceMs: 0 };
  function* steps(): Steps<string> {
    for (let step = 0; step < 5; step += 1) {
      nowMs += stepMs;
      longest.ms = Math.max(longest.ms, nowMs - longest.sinceMs);
      yield;
    }
    return 'done';
  }
  const takeTurn = () => {
    turns += 1;
    longest.sinceMs = nowMs;
    return Promise.resolve();
  };
  return { steps: steps(), options: { takeTurn, elapsed: () => nowMs }, turns: () => turns, longest };
}

test.each([
  [1, 1],
  [3, 2],
  [8, 5],
])('of five steps of %i ms others have the thread %i times in between', async (stepMs, turns) => {
  const doing = work(stepMs);
  expect(await inTurns(doing.steps, doing.options)).toBe('done');
  expect(doing.turns()).toBe(turns);
  expect(doing.longest.ms).toBeLessThan(5 + stepMs);
});

test('short work takes no turn', async () => {
  const doing = work(0.5);
  expect(await inTurns(doing.steps, doing.options)).toBe('done');
  expect(doing.turns()).toBe(0);
});

test('what a step throws ends the work', async () => {
  const steps = () =>
    mapped([1, 2, 3], (item) => {
      if (item === 2) throw new RangeError('two');
      return item;
    });
  await expect(inTurns(steps())).rejects.toThrow('two');
  expect(() => atOnce(steps())).toThrow('two');
});

test('a list is made as Array.map makes it', () => {
  expect(atOnce(mapped(['a', 'b'], (item, index) => `${item}${index}`))).toEqual(['a0', 'b1']);
  expect(atOnce(mapped([], () => 0))).toEqual([]);
});
