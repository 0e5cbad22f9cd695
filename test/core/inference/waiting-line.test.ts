import { expect, test } from 'vitest';
import { createWaitingLine } from '../../../core/inference/waiting-line.ts';

function lineOf(...calls: string[]) {
  const line = createWaitingLine<string>();
  for (const call of calls) line.add(call[0]!, call);
  return line;
}

test('callers take turns, each in its own order', () => {
  expect(lineOf('a1', 'a2', 'a3', 'b1', 'c1', 'b2').inTurn()).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
});

test('whoever was served goes behind the others', () => {
  const line = lineOf('a1', 'a2', 'b1');
  line.remove('a1');
  line.add('a', 'a3');
  expect(line.inTurn()).toEqual(['b1', 'a2', 'a3']);
  expect(line.size).toBe(3);
});

test('a call that is not in line changes nothing', () => {
  const line = lineOf('a1', 'b1');
  line.remove('x1');
  expect(line.inTurn()).toEqual(['a1', 'b1']);
  line.remove('a1');
  line.remove('b1');
  expect([line.size, line.inTurn()]).toEqual([0, []]);
});
