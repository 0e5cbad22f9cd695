import { expect, test } from 'vitest';
import { createFairQueue } from '../../../../core/inference/local/fair-queue.ts';

/** A call's first letter is its owner; guests have great ones. */
const ownerOf = (call: string) => ({ name: call[0]!, isGuest: /^[A-Z]/.test(call) });

function lineOf(...calls: string[]) {
  const line = createFairQueue<string>();
  for (const call of calls) line.add(ownerOf(call), call);
  return line;
}

test('callers take turns, each in its own order', () => {
  expect(lineOf('a1', 'a2', 'a3', 'b1', 'c1', 'b2').inTurn()).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
});

test('whoever was served goes behind the others', () => {
  const line = lineOf('a1', 'a2', 'b1');
  line.remove('a1');
  line.add(ownerOf('a'), 'a3');
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

test('guests take turns after all others, whenever they came', () => {
  const line = lineOf('G1', 'G2', 'H1', 'a1');
  expect(line.inTurn()).toEqual(['a1', 'G1', 'H1', 'G2']);
  line.add(ownerOf('b'), 'b1');
  line.remove('a1');
  expect(line.inTurn()).toEqual(['b1', 'G1', 'H1', 'G2']);
});

test.each([
  // [who waits, whose call comes, whose has to go]
  ['a1 a2 a3 b1', 'b', 'a3'],
  ['a1 a2 b1', 'b', undefined],
  ['a1 a2 a3', 'a', undefined],
  ['a1', 'b', undefined],
  ['a1 a2 a3 G1', 'a', 'G1'],
  ['a1 G1 H1 H2', 'a', 'H2'],
  ['a1 a2 a3 a4', 'G', undefined],
  ['G1 G2 G3 a1', 'H', 'G3'],
  ['G1 G2', 'G', undefined],
])('of %s, one of %s comes: %s goes', (waiting, owner, expected) => {
  expect(lineOf(...waiting.split(' ')).findExcess(ownerOf(owner), () => true)).toBe(expected);
});

test('calls that are not of the kind that is too many are left alone', () => {
  const line = lineOf('a1', 'a2', 'a3', 'b1', 'G1');
  expect(line.findExcess(ownerOf('b'), (call) => call.startsWith('b'))).toBeUndefined();
  expect(line.findExcess(ownerOf('b'), (call) => !call.endsWith('3') && !call.startsWith('G'))).toBeUndefined();
  expect(line.findExcess(ownerOf('c'), (call) => !call.startsWith('G'))).toBe('a3');
});
