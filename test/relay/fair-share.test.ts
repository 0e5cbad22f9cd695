/** Who gives way where all places are taken. */
// First, so that what follows is counted.
import { countWork } from '../support/work.ts';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FairShare } from '../../relay/fair-share.ts';
import { runs } from '../support/sampling.ts';

/** As `address tag number`. */
const pathOf = (holder: string): readonly string[] => holder.split(' ').slice(0, 2);
function shareOf(holders: readonly string[]): FairShare<string> {
  const share = new FairShare<string>();
  for (const holder of holders) share.add(holder, pathOf(holder));
  return share;
}
const crowding = (holders: readonly string[], newcomer: string) => shareOf(holders).findCrowding(pathOf(newcomer));

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

test('it is the same whoever came and went before', () => {
  const comer = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('x', 'y'), fc.boolean());
  fc.assert(
    fc.property(fc.array(comer, { maxLength: 40 }), (sequence) => {
      const share = new FairShare<string>();
      const holders: string[] = [];
      for (const [number, [address, tag, stays]] of sequence.entries()) {
        const holder = `${address} ${tag} ${number}`;
        const leaving = stays ? undefined : holders.splice(number % (holders.length + 1), 1)[0];
        if (leaving !== undefined) share.delete(leaving);
        share.add(holder, pathOf(holder));
        holders.push(holder);
        expect([...share.holders()]).toEqual(holders);
        expect(share.sizeOf([address])).toBe(holders.filter((one) => one.startsWith(address)).length);
        expect(share.oldestIn([address, tag])).toBe(holders.find((one) => one.startsWith(`${address} ${tag}`)));
        // Which one of several that hold as much, is another matter.
        const [found, plain] = [share.findCrowding([address, tag]), crowding(holders, `${address} ${tag}`)];
        const sizes = (one?: { readonly holder: string; readonly isOwn: boolean }): unknown =>
          one && [one.isOwn, share.sizeOf(pathOf(one.holder).slice(0, 1))];
        expect(sizes(found)).toEqual(sizes(plain));
      }
    }),
    runs(1000),
  );
});

test('finding it takes no more work among very many than among few', async () => {
  const workAmong = (many: number): Promise<number> => {
    const share = shareOf(Array.from({ length: many }, (_, at) => `a${at % 7} x${at % 5} ${at}`));
    return countWork('relay/', () => {
      for (let at = 0; at < 100; at += 1) {
        const found = share.findCrowding(['a1', 'x1']);
        if (found !== undefined) share.delete(found.holder);
        share.add(`a1 x1 new ${at}`, ['a1', 'x1']);
      }
    });
  };
  expect(await workAmong(10_000)).toBeLessThan(2 * (await workAmong(100)));
});
