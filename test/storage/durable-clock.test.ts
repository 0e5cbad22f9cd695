import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openDatabase, type Database } from '../../storage/database.ts';
import {
  durableNow,
  latestTimeMs,
  openDurableClock,
  STEADY_MS,
  trustClock,
  type DurableClock,
} from '../../storage/durable-clock.ts';
import { createFakeTime, type FakeTime } from '../core/fake-time.ts';

const START_MS = 1_800_000_000_000;
const DAY_MS = 86_400_000;

let home: string;
let database: Database;
/** The monotonic clock, from 0. */
let time: FakeTime;
/** What the machine's clock says beyond that. */
let apartMs: number;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'postern-clock-'));
  database = openDatabase(home);
  time = createFakeTime(0);
  apartMs = START_MS;
});
afterEach(() => {
  database.close();
  rmSync(home, { recursive: true });
});

const wallMs = () => time.now() + apartMs;
const open = (): DurableClock =>
  openDurableClock({
    database,
    now: wallMs,
    elapsed: time.now,
    setTimer: time.setTimer,
    onError: (error) => expect.fail(String(error)),
  });

test('is the machine’s clock where nothing is wrong', () => {
  const clock = open();
  for (const ms of [0, 1, STEADY_MS, DAY_MS]) {
    time.advance(ms);
    expect(clock.now()).toBe(wallMs());
  }
});

describe('a clock that is set back', () => {
  test('after it went steadily, time goes on as the monotonic clock does', () => {
    const clock = open();
    time.advance(DAY_MS);
    const before = clock.now();
    apartMs -= 10 * DAY_MS;
    expect(clock.now()).toBe(before);
    time.advance(5000);
    expect(clock.now()).toBe(before + 5000);
    apartMs += 10 * DAY_MS;
    expect(clock.now()).toBe(wallMs());
  });

  test('between two runs, time goes on from the end of the first', () => {
    open().close();
    const first = open();
    time.advance(DAY_MS);
    first.close();
    const before = wallMs();
    apartMs -= 10 * DAY_MS;
    expect(open().now()).toBe(before);
    expect(durableNow(database, wallMs())).toBe(before);
  });

  test('after a crash, at most a minute is lost', () => {
    open();
    time.advance(DAY_MS);
    expect(wallMs() - latestTimeMs(database)).toBeLessThanOrEqual(60_000);
  });
});

describe('a clock that was ahead', () => {
  test('for less than five minutes leaves no trace', () => {
    const clock = open();
    time.advance(DAY_MS);
    apartMs += 5000 * DAY_MS;
    time.advance(STEADY_MS - 1000);
    expect(clock.now()).toBe(wallMs());
    apartMs -= 5000 * DAY_MS;
    time.advance(STEADY_MS);
    expect(clock.now()).toBe(wallMs());
    clock.close();
    expect(latestTimeMs(database)).toBe(wallMs());
  });

  test('at the first start of all leaves none either', () => {
    apartMs += 5000 * DAY_MS;
    open().close();
    apartMs -= 5000 * DAY_MS;
    expect(open().now()).toBe(wallMs());
  });

  test('for longer counts, until its owner says that it does not', () => {
    const clock = open();
    apartMs += 5000 * DAY_MS;
    time.advance(STEADY_MS + 60_000);
    const ahead = wallMs();
    apartMs -= 5000 * DAY_MS;
    expect(clock.now()).toBe(ahead);
    clock.close();
    trustClock(database, wallMs());
    expect(open().now()).toBe(wallMs());
  });
});

test('a machine that slept goes on with its clock', () => {
  const clock = open();
  time.advance(DAY_MS);
  apartMs += DAY_MS / 3;
  expect(clock.now()).toBe(wallMs());
  time.advance(STEADY_MS + 60_000);
  apartMs -= DAY_MS;
  expect(clock.now()).toBe(wallMs() + DAY_MS);
});

test('where nothing was ever kept there is no latest time, and looking makes none', () => {
  expect(latestTimeMs(database)).toBe(0);
  expect(durableNow(database, 5)).toBe(5);
});
