import { expect, test } from 'vitest';
import { createStorageHealth } from '../../storage/storage-health.ts';
import { createFakeTime } from '../core/fake-time.ts';

const full = () => Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });

function unexpected(error: unknown): never {
  throw error;
}

function begin() {
  const time = createFakeTime();
  const disk = { isFull: false };
  const said: string[] = [];
  const probe = () => {
    if (disk.isFull) throw full();
  };
  const health = createStorageHealth({ ...time, probe, say: (words) => said.push(words) });
  return { time, disk, said, health };
}

test('trouble begins with the first write that a disk refuses, and ends when a write works', () => {
  const { time, disk, said, health } = begin();
  health.note(new TypeError('ours'));
  expect([health.trouble(), time.pending()]).toEqual([undefined, 0]);
  disk.isFull = true;
  const sinceMs = time.now();
  health.note(new Error('the request failed', { cause: full() }));
  time.advance(60_000);
  health.note(full());
  expect(health.trouble()).toEqual({ fault: 'full', sinceMs });
  expect([said.length, said[0]]).toEqual([1, expect.stringMatching(/SQLITE_FULL.*Make room/)]);
  disk.isFull = false;
  time.advance(10_000);
  expect([health.trouble(), said.length, time.pending()]).toEqual([undefined, 2, 0]);
});

test('what had to wait is written before the trouble is over, and once', () => {
  const { time, disk, health } = begin();
  disk.isFull = true;
  const writes: string[] = [];
  let isStubborn = true;
  health.retry(() => void writes.push('first'), unexpected);
  health.retry(() => {
    if (isStubborn) throw full();
    writes.push('second');
  }, unexpected);
  health.note(full());
  disk.isFull = false;
  time.advance(60_000);
  expect([writes, health.trouble()?.fault]).toEqual([['first'], 'full']);
  isStubborn = false;
  time.advance(60_000);
  expect([writes, health.trouble()]).toEqual([['first', 'second'], undefined]);
});

test('a write that fails although the disk works is told of, not tried again, and keeps no trouble going', () => {
  const { time, disk, health } = begin();
  disk.isFull = true;
  const writes: string[] = [];
  const failures: unknown[] = [];
  const ours = new TypeError('ours');
  let tries = 0;
  health.retry(
    () => {
      tries += 1;
      throw ours;
    },
    (error) => failures.push(error),
  );
  health.retry(() => void writes.push('second'), unexpected);
  health.note(full());
  time.advance(60_000);
  expect([tries, failures, health.trouble()?.fault]).toEqual([0, [], 'full']);
  disk.isFull = false;
  time.advance(60_000);
  expect([tries, failures, writes, health.trouble()]).toEqual([1, [ours], ['second'], undefined]);
});

test('nothing is tried any more after the end', () => {
  const { time, health } = begin();
  health.note(full());
  health.close();
  expect(time.pending()).toBe(0);
});
