/** Another network, or a machine that slept: whoever waits is told, and nobody else. */
import { expect, test } from 'vitest';
import { watchNetwork } from '../../service/network-watch.ts';
import { createFakeTime } from '../core/fake-time.ts';

function start() {
  const time = createFakeTime();
  let [addresses, told] = ['10.0.0.1', 0];
  const watch = watchNetwork({ ...time, addresses: () => addresses, onChange: () => (told += 1) });
  return { time, watch, told: () => told, moveTo: (address: string) => (addresses = address) };
}

test('of nothing that stays as it is', () => {
  const { time, told } = start();
  time.advance(3_600_000);
  expect(told()).toBe(0);
});

test('of another address, once, and of the one before again', () => {
  const { time, told, moveTo } = start();
  moveTo('10.0.0.2');
  time.advance(60_000);
  expect(told()).toBe(1);
  moveTo('10.0.0.1');
  time.advance(60_000);
  expect(told()).toBe(2);
});

test('of sleep, and not of a timer that was late', () => {
  const { time, told } = start();
  time.sleep(20_000);
  time.advance(5000);
  expect(told()).toBe(0);
  time.sleep(60_000);
  time.advance(5000);
  expect(told()).toBe(1);
  time.advance(60_000);
  expect(told()).toBe(1);
});

test('of nothing when it has ended', () => {
  const { time, watch, told, moveTo } = start();
  watch.close();
  moveTo('10.0.0.2');
  time.advance(60_000);
  expect([told(), time.pending()]).toEqual([0, 0]);
});
