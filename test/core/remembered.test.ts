import { expect, test } from 'vitest';
import { remembered } from '../../core/remembered.ts';

test('what was made is made once, and a failure is forgotten', async () => {
  let calls = 0;
  const value = remembered(() => {
    calls += 1;
    return calls === 1 ? Promise.reject(new Error('not yet')) : Promise.resolve(calls);
  });
  expect(await value.find()).toBeUndefined();
  const failing = [value.get(), value.get()];
  expect(calls).toBe(1);
  for (const one of failing) await expect(one).rejects.toThrow('not yet');
  expect(await value.find()).toBeUndefined();
  expect(await Promise.all([value.get(), value.get(), value.find()])).toEqual([2, 2, 2]);
});
