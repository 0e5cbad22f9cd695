import { describe, expect, test } from 'vitest';
import { FairRate } from '../../relay/fair-rate.ts';

/** Whose time goes by as the test says. */
function rateOf(options: { perSecond: number; burst: number }) {
  let nowMs = 0;
  const rate = new FairRate({ ...options, elapsedMs: () => nowMs });
  return { rate, pass: (ms: number) => (nowMs += ms) };
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
});
