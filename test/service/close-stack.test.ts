import { expect, test } from 'vitest';
import { CloseStack } from '../../service/close-stack.ts';

test('what was opened last closes first, one after the other', async () => {
  const stack = new CloseStack();
  const order: string[] = [];
  const last = Promise.withResolvers<void>();
  stack.onClose(() => void order.push('first'));
  stack.onClose(async () => {
    await last.promise;
    order.push('last');
  });
  const closed = stack.close();
  expect(order).toEqual([]);
  last.resolve();
  await closed;
  expect(order).toEqual(['last', 'first']);
});

test('one that fails keeps none of the others open, and is told when they are closed', async () => {
  const stack = new CloseStack();
  const order: string[] = [];
  stack.onClose(() => void order.push('first'));
  stack.onClose(() => Promise.reject(new Error('later')));
  stack.onClose(() => {
    throw new Error('sooner');
  });
  await expect(stack.close()).rejects.toThrow('sooner');
  expect(order).toEqual(['first']);
});

test('nothing is closed twice', async () => {
  const stack = new CloseStack();
  let times = 0;
  stack.onClose(() => void times++);
  await stack.close();
  await stack.close();
  expect(times).toBe(1);
});
