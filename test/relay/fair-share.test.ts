/** Who gives way where all places are taken. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findCrowding } from '../../relay/fair-share.ts';
import { runs } from '../support/sampling.ts';

/** As `address tag number`. */
const pathOf = (holder: string): readonly string[] => holder.split(' ').slice(0, 2);
const crowding = (holders: readonly string[], newcomer: string) =>
  findCrowding(holders, { path: pathOf(newcomer), pathOf });

test.each([
  ['the oldest of the tag that holds most', ['a x 1', 'a y 1', 'a y 2', 'a x 2', 'a x 3'], 'a z', 'a x 1', false],
  ['the address is looked at before the tag', ['b x 1', 'b x 2', 'a y 1', 'a z 1', 'a w 1'], 'c v', 'a y 1', false],
  ['whoever holds most gives way to itself', ['a x 1', 'a x 2', 'b y 1'], 'a x', 'a x 1', true],
  ['nobody takes the place of one who would be left with less', ['a x 1', 'b y 1', 'b y 2'], 'a x', 'a x 1', true],
])('%s', (_, holders, newcomer, holder, isOwn) => {
  expect(crowding(holders, newcomer)).toEqual({ holder, isOwn });
});

test('where everybody holds one, nobody gives way', () => {
  expect(crowding(['a x 1', 'b y 1'], 'c z')).toBeUndefined();
  expect(crowding(['a x 1', 'a y 1'], 'a z')).toBeUndefined();
  expect(crowding([], 'a x')).toBeUndefined();
});

test('whoever holds nothing is let in, as long as anybody holds two; and stays, whatever another does', () => {
  const LIMIT = 8;
  const greedy = fc.array(fc.constantFrom('a x', 'a y', 'a z', 'b x', 'b y'), { minLength: 20, maxLength: 60 });
  fc.assert(
    fc.property(greedy, fc.nat(19), (comers, at) => {
      const sequence = [...comers.slice(0, at), 'a modest', 'c modest', ...comers.slice(at)];
      const holders: string[] = [];
      for (const [number, newcomer] of sequence.entries()) {
        if (holders.length === LIMIT) {
          const found = crowding(holders, newcomer);
          if (found === undefined) continue;
          holders.splice(holders.indexOf(found.holder), 1);
        }
        holders.push(`${newcomer} ${number}`);
      }
      for (const modest of ['a modest', 'c modest']) {
        expect(holders.filter((holder) => holder.startsWith(modest))).toHaveLength(1);
      }
    }),
    runs(1000),
  );
});
