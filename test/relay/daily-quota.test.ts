/** The bytes of a day, and who of a gateway's devices used them up. */
// First, so that what follows is counted.
import { countWork } from '../support/work.ts';
import { expect, test } from 'vitest';
import { DailyQuota } from '../../relay/daily-quota.ts';

const user = (tag: string) => ({ routingId: 'gateway', tag });

test('where it is used up, whoever had less than an equal part goes on up to that; the next day all begin anew', () => {
  let now = 0;
  const quota = new DailyQuota({ bytesPerDay: 100, now: () => now });
  quota.spend(user('a'), 99);
  expect(quota.isUsedUp(user('a'))).toBe(false);
  quota.spend(user('a'), 1);
  expect([quota.isUsedUp(user('a')), quota.isUsedUp(user('b'))]).toEqual([true, false]);
  quota.spend(user('b'), 50);
  expect(quota.isUsedUp(user('b'))).toBe(true);
  now = 86_400_000;
  expect(quota.isUsedUp(user('a'))).toBe(false);
});

test('no frame costs more for the tags that came that day', async () => {
  const workAmong = (tags: number): Promise<number> => {
    const quota = new DailyQuota({ bytesPerDay: 1e9, now: () => 0 });
    for (let at = 0; at < tags; at += 1) quota.spend(user(`tag ${at}`), 10);
    return countWork('relay/', () => {
      for (let at = 0; at < 100; at += 1) {
        quota.spend(user('tag 1'), 10);
        quota.isUsedUp(user('tag 1'));
      }
    });
  };
  expect(await workAmong(4096)).toBeLessThan(2 * (await workAmong(10)));
});
