import { expect, test } from 'vitest';
import type { AuditEntry } from '../../../service/audit-events.ts';
import { createRefusalTally } from '../../../core/audit/refusal-tally.ts';
import { createFakeTime } from '../fake-time.ts';

function setUp() {
  const time = createFakeTime();
  const entries: AuditEntry[] = [];
  const errors: unknown[] = [];
  const disk = { isFull: false };
  const append = (entry: AuditEntry): void => {
    if (disk.isFull) throw new Error('full');
    entries.push(entry);
  };
  const { setTimer } = time;
  const tally = createRefusalTally({ log: { append }, setTimer, onError: (error) => void errors.push(error) });
  return { time, entries, errors, disk, tally };
}

test('a thousand refusals in a minute are one entry for each reason', () => {
  const { time, entries, tally } = setUp();
  for (let turn = 0; turn < 1000; turn += 1) tally.note(turn % 4 === 0 ? 'expired' : 'forged');
  time.advance(59_999);
  expect(entries).toEqual([]);
  time.advance(1);
  expect(entries).toEqual([
    { kind: 'refused', reason: 'expired', count: 250 },
    { kind: 'refused', reason: 'forged', count: 750 },
  ]);
  time.advance(1_000_000);
  expect(entries).toHaveLength(2);
  expect(time.pending()).toBe(0);
});

test('the next minute counts from nothing', () => {
  const { time, entries, tally } = setUp();
  tally.note('forged');
  time.advance(60_000);
  tally.note('forged');
  time.advance(60_000);
  expect(entries).toEqual(Array.from({ length: 2 }, () => ({ kind: 'refused', reason: 'forged', count: 1 })));
});

test('what was counted is told at the end, too', () => {
  const { time, entries, tally } = setUp();
  tally.note('forged');
  tally.flush();
  expect(entries).toHaveLength(1);
  expect(time.pending()).toBe(0);
  tally.flush();
  expect(entries).toHaveLength(1);
});

test('a log that cannot be written loses nothing', () => {
  const { time, entries, errors, disk, tally } = setUp();
  disk.isFull = true;
  tally.note('forged');
  time.advance(60_000);
  tally.note('forged');
  time.advance(60_000);
  expect(errors).toHaveLength(2);
  disk.isFull = false;
  time.advance(60_000);
  expect(entries).toEqual([{ kind: 'refused', reason: 'forged', count: 2 }]);
});
