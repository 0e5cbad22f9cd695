/** What the owner is told failed has its reason with it: the disk's code, or kind and place, and never the message. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { resolveSettings } from '../../service/settings.ts';
import { openApprovals } from '../../service/approvals.ts';
import { reasonOf } from '../../service/internal-error.ts';
import { openStorage } from '../../service/storage.ts';
import type { Start } from '../../service/start.ts';
import { createFakeTime, type FakeTime } from '../core/fake-time.ts';

interface Opened {
  readonly start: Start;
  readonly time: FakeTime;
  readonly said: readonly string[];
}

function newStart(): Opened {
  const home = mkdtempSync(join(tmpdir(), 'postern-said-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const time = createFakeTime();
  const said: string[] = [];
  const { settings } = resolveSettings({ flags: {}, environment: {}, file: {} });
  const { signal: stopping } = new AbortController();
  const clock = { now: time.now, elapsed: time.now, setTimer: time.setTimer };
  const say = (words: string): void => void said.push(words);
  const currentSettings = async () => settings;
  const parts = { settings, currentSettings, clock, stopping, onClose: onTestFinished };
  return { start: { home, environment: {}, say, ...parts }, time, said };
}

const SECRET = 'the prompt';

test('a fault of a disk has its code, and anything else its type and its line', () => {
  expect(reasonOf(Object.assign(new Error(SECRET), { code: 'SQLITE_FULL' }))).toBe(' (SQLITE_FULL)');
  expect(reasonOf(new TypeError(SECRET))).toMatch(/^ \(TypeError at internal-error\.test\.ts:\d+:\d+\)$/);
  expect(reasonOf(SECRET)).toBe(' (string)');
});

test('a time that cannot be kept', () => {
  const { start, time, said } = newStart();
  openStorage(start).database.exec('DROP TABLE clock');
  time.advance(10 * 60_000);
  expect(said[0]).toMatch(/^postern: the time can't be kept \(SqliteError at \S+\)\.$/);
});

test('an approval that the audit log does not take', () => {
  const { start, said } = newStart();
  const { storage, events } = openStorage(start);
  const append = (): never => {
    throw new TypeError(SECRET);
  };
  const { approvals } = openApprovals(start, { audit: { append }, storage, events });
  const asked = approvals.request({ kind: 'pairing', summary: 'a phone', lifetimeMs: 60_000 });
  approvals.decide(asked!.approval.id, 'denied');
  expect(said).toEqual([expect.stringMatching(/audit log \(TypeError at internal-error\.test\.ts:\d+:\d+\)\.$/)]);
});
