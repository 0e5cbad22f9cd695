import { expect, test } from 'vitest';
import { createTurnstile } from '../../../core/inference/turnstile.ts';

test('one at a time, in the order of arrival', async () => {
  const turnstile = createTurnstile();
  const order: string[] = [];
  const visit = async (name: string): Promise<void> => {
    const leave = await turnstile.enter();
    order.push(`${name} in`);
    await Promise.resolve();
    order.push(`${name} out`);
    leave();
    leave();
  };
  await Promise.all(['a', 'b', 'c'].map(visit));
  expect(order).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out']);
});

test('whoever gives up leaves the line, and the next one is let in', async () => {
  const turnstile = createTurnstile();
  const leave = await turnstile.enter();
  const impatient = new AbortController();
  const second = turnstile.enter(impatient.signal);
  const third = turnstile.enter();
  impatient.abort(new Error('enough'));
  await expect(second).rejects.toThrow('enough');
  leave();
  (await third)();
  await expect(turnstile.enter(AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
  (await turnstile.enter())();
});
