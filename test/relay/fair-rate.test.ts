// First, so that what follows is counted.
import { countWork } from '../support/work.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FairRate } from '../../relay/fair-rate.ts';
import { runs } from '../support/sampling.ts';

/** Whose time goes by as the test says. */
function rateOf(options: { perSecond: number; burst: number }) {
  let nowMs = 0;
  const rate = new FairRate({ ...options, elapsedMs: () => nowMs });
  return { rate, pass: (ms: number) => (nowMs += ms) };
}

/** The same by the plainest means: every level is filled each time, the fullest first. */
function plainRateOf({ perSecond, burst }: { perSecond: number; burst: number }) {
  const levels = new Map<string, number>();
  return {
    spend: (name: string, bytes: number) => levels.set(name, (levels.get(name) ?? burst) - bytes),
    /** The least and the most: whether one that lacks next to nothing is full, is a matter of rounding. */
    waitMs: (name: string): readonly [number, number] => {
      const overdrawn = Math.max(0, -(levels.get(name) ?? burst));
      const clearlyInNeed = [...levels.values()].filter((level) => burst - level > 1e-6).length;
      const wait = (users: number): number => Math.min(1000, (overdrawn / perSecond) * users * 1000);
      return [wait(clearlyInNeed), wait(levels.size)];
    },
    pass: (ms: number) => {
      let left = (ms / 1000) * perSecond;
      const inNeed = [...levels].toSorted(([, one], [, other]) => other - one);
      for (const [at, [name, level]] of inNeed.entries()) {
        const part = Math.min(left / (inNeed.length - at), burst - level);
        left -= part;
        if (burst - level - part > 1e-9) levels.set(name, level + part);
        else levels.delete(name);
      }
    },
  };
}

describe('a rate that is shared', () => {
  test('is all of it for one alone', () => {
    const { rate, pass } = rateOf({ perSecond: 1000, burst: 100 });
    const one = rate.of('one');
    one.spend(600);
    expect(one.waitMs()).toBe(500);
    pass(500);
    expect(one.waitMs()).toBe(0);
  });

  test('is in equal parts for two, and what one does not need is the other’s', () => {
    const { rate, pass } = rateOf({ perSecond: 1000, burst: 100 });
    const [one, other] = [rate.of('one'), rate.of('other')];
    one.spend(600);
    other.spend(200);
    expect([one.waitMs(), other.waitMs()]).toEqual([1000, 200]);
    pass(200);
    expect([one.waitMs(), other.waitMs()]).toEqual([800, 0]);
    // The other is full with 100 more, and from then on everything is for the one.
    pass(200);
    expect(one.waitMs()).toBe(300);
    pass(300);
    expect(one.waitMs()).toBe(0);
  });

  test('never gives all together more than there is', () => {
    const { rate, pass } = rateOf({ perSecond: 1000, burst: 50 });
    const names = ['a', 'b', 'c', 'd'];
    let taken = 0;
    for (let tick = 0; tick < 1000; tick += 1) {
      for (const name of names) {
        const share = rate.of(name);
        if (share.waitMs() > 0) continue;
        share.spend(tick % 2 === 0 ? 70 : 10);
        taken += tick % 2 === 0 ? 70 : 10;
      }
      pass(10);
    }
    // Ten seconds, a burst of each, and what each may overdraw once.
    expect(taken).toBeLessThanOrEqual(10_000 + names.length * (50 + 70));
    expect(taken).toBeGreaterThan(9_500);
  });

  test('is what filling each of them by turns would give', () => {
    const step = fc.oneof(
      fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd'), bytes: fc.integer({ min: 1, max: 400 }) }),
      fc.record({ ms: fc.integer({ min: 1, max: 500 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const options = { perSecond: 1000, burst: 100 };
        const [{ rate, pass }, plain] = [rateOf(options), plainRateOf(options)];
        for (const one of steps) {
          if ('ms' in one) {
            pass(one.ms);
            plain.pass(one.ms);
          } else {
            rate.of(one.name).spend(one.bytes);
            plain.spend(one.name, one.bytes);
          }
          for (const name of ['a', 'b', 'c', 'd']) {
            const [least, most] = plain.waitMs(name);
            expect(rate.of(name).waitMs()).toBeGreaterThan(least - 0.001);
            expect(rate.of(name).waitMs()).toBeLessThan(most + 1.001);
          }
        }
      }),
      runs(2000),
    );
  });

  test('of nothing is no limit, and who owes more than a burst is exhausted', () => {
    const { rate } = rateOf({ perSecond: 0, burst: 1 });
    rate.of('one').spend(1e9);
    expect([rate.of('one').waitMs(), rate.of('one').isExhausted()]).toEqual([0, false]);
    const limited = rateOf({ perSecond: 10, burst: 10 }).rate.of('one');
    limited.spend(20);
    expect(limited.isExhausted()).toBe(false);
    limited.spend(1);
    expect(limited.isExhausted()).toBe(true);
  });

  test('costs each of very many who use it no more than each of few', async () => {
    const workFor = async (users: number): Promise<number> => {
      const { rate, pass } = rateOf({ perSecond: 1000, burst: 100 });
      for (let at = 0; at < users; at += 1) rate.of(`user ${at}`).spend(1000 + at);
      return countWork('relay/', () => {
        for (let at = 0; at < 100; at += 1) {
          rate.of('one').spend(10);
          rate.of('one').waitMs();
          pass(1);
        }
      });
    };
    expect(await workFor(4096)).toBeLessThan(2 * (await workFor(16)));
  });
});
