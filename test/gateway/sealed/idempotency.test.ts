/** What was begun is begun once, for as long as any copy of it can arrive. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { asSessionId } from '../../../channel/keys.ts';
import { openDatabase, type Database } from '../../../storage/database.ts';
import {
  createActions,
  startRequestHash,
  KEPT_MS,
  MAX_ACTIONS,
  type Actions,
} from '../../../gateway/sealed/idempotency.ts';
import type { Action } from '../../../gateway/sealed/unwritten-actions.ts';
import { createFakeTime } from '../../core/fake-time.ts';
import { runs } from '../../support/sampling.ts';

function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), 'postern-actions-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  return home;
}

function open(home: string): Database {
  const database = openDatabase(home);
  onTestFinished(() => void database.close());
  return database;
}

function begin(database: Database, now: () => number, onDiskFault: (error: unknown) => void = unexpected): Actions {
  return createActions({ database, now, onDiskFault });
}

function unexpected(error: unknown): never {
  throw error;
}

const key = (name: number): Uint8Array => {
  const bytes = new Uint8Array(16);
  new DataView(bytes.buffer).setUint32(0, name);
  return bytes;
};
interface ActionChange {
  readonly device?: string;
  readonly name?: number;
  readonly body?: string;
  readonly callNumber?: number;
  readonly mayBeForgotten?: boolean;
}
const action = (more: ActionChange = {}): Action => ({
  deviceId: more.device ?? 'phone',
  key: key(more.name ?? 1),
  requestHash: startRequestHash({ method: 'POST', path: '/v1/x' }, [])
    .update(more.body ?? '')
    .digest(),
  call: { sessionId: asSessionId(new Uint8Array(16)), callNumber: more.callNumber ?? 0 },
  mayBeForgotten: more.mayBeForgotten ?? false,
});

test('of two at once one is new, also when each has a connection of its own', () => {
  const home = newHome();
  const { now } = createFakeTime();
  const [one, other] = [begin(open(home), now), begin(open(home), now)];
  expect(one.begin(action({ callNumber: 7 }))).toEqual({ result: 'new' });
  const { call } = action({ callNumber: 7 });
  for (const actions of [one, other])
    expect(actions.begin(action({ callNumber: 8 }))).toEqual({ result: 'repeat', call });
  expect(other.begin(action({ body: 'other' }))).toEqual({ result: 'other_request' });
  expect(other.begin(action({ device: 'tablet' }))).toEqual({ result: 'new' });
});

test('a full table refuses, evicts nobody, and stands in nobody else’s way', () => {
  const { now, sleep } = createFakeTime();
  const database = open(newHome());
  const actions = begin(database, now);
  database.transaction(() => {
    for (let name = 0; name < MAX_ACTIONS; name++) actions.begin(action({ name }));
  })();
  expect(actions.begin(action({ name: MAX_ACTIONS }))).toEqual({ result: 'full' });
  expect(actions.begin(action({ name: 0 })).result).toBe('repeat');
  expect(actions.begin(action({ name: MAX_ACTIONS - 1, body: 'other' })).result).toBe('other_request');
  expect(actions.begin(action({ device: 'tablet', name: MAX_ACTIONS })).result).toBe('new');
  sleep(KEPT_MS + 1);
  expect(actions.begin(action({ name: MAX_ACTIONS })).result).toBe('new');
  expect(database.prepare('SELECT count(*) FROM sealed_actions').pluck().get()).toBe(1);
});

test('it is remembered for 125 minutes, and so for longer than any session takes calls', () => {
  const { now, sleep } = createFakeTime();
  const actions = begin(open(newHome()), now);
  actions.begin(action());
  for (const minutes of [11, 48, 60]) {
    sleep(minutes * 60_000);
    expect(actions.begin(action()).result).toBe('repeat');
  }
  sleep(KEPT_MS - 119 * 60_000);
  expect(actions.begin(action()).result).toBe('repeat');
  sleep(1);
  expect(actions.begin(action()).result).toBe('new');
});

test('whatever comes in whatever order, over restarts, a key is new once in its time', () => {
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        device: fc.constantFrom('phone', 'tablet'),
        name: fc.nat(3),
        body: fc.constantFrom('a', 'b'),
      }),
    },
    { weight: 3, arbitrary: fc.record({ sleepMs: fc.integer({ min: 0, max: KEPT_MS }) }) },
    { weight: 1, arbitrary: fc.constantFrom('restart' as const) },
    { weight: 1, arbitrary: fc.record({ forget: fc.constantFrom('phone', 'tablet') }) },
  );
  const home = newHome();
  const time = createFakeTime();
  const cleaner = begin(open(home), time.now);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      for (const device of ['phone', 'tablet']) cleaner.forget(device);
      let actions: Actions = begin(open(home), time.now);
      const begun = new Map<string, { readonly atMs: number; readonly body: string }>();
      for (const [at, one] of steps.entries()) {
        if (one === 'restart') actions = begin(open(home), time.now);
        else if ('sleepMs' in one) time.sleep(one.sleepMs);
        else if ('forget' in one) {
          actions.forget(one.forget);
          for (const name of begun.keys()) if (name.startsWith(one.forget)) begun.delete(name);
        } else {
          const name = `${one.device} ${one.name}`;
          const before = begun.get(name);
          const isKnown = before !== undefined && before.atMs >= time.now() - KEPT_MS;
          const expected = !isKnown ? 'new' : before.body === one.body ? 'repeat' : 'other_request';
          expect(actions.begin(action({ ...one, callNumber: at })).result).toBe(expected);
          if (!isKnown) begun.set(name, { atMs: time.now(), body: one.body });
        }
      }
    }),
    runs(400),
  );
});

test('a disk that does not forget a revoked device is told of, and any other failure is one', () => {
  const { now } = createFakeTime();
  const database = open(newHome());
  const faults: unknown[] = [];
  const actions = begin(database, now, (error: unknown) => faults.push(error));
  actions.begin(action());
  database.pragma('query_only = ON');
  actions.forget('phone');
  expect(faults).toEqual([expect.objectContaining({ code: 'SQLITE_READONLY' })]);
  database.pragma('query_only = OFF');
  actions.forget('phone');
  expect(actions.begin(action()).result).toBe('new');
  database.exec('DROP TABLE sealed_actions');
  expect(() => actions.forget('phone')).toThrow('no such table');
  expect(faults).toHaveLength(1);
});

test('what may be forgotten is begun once though the disk takes no note of it, and all else is refused', () => {
  const { now, sleep } = createFakeTime();
  const database = open(newHome());
  const faults: unknown[] = [];
  const actions = begin(database, now, (error) => faults.push(error));
  const chat = (more: ActionChange = {}): Action => action({ mayBeForgotten: true, ...more });
  actions.begin(chat({ name: 1 }));
  database.pragma('query_only = ON');
  expect(actions.begin(chat({ name: 1 })).result).toBe('repeat');
  expect(actions.begin(chat({ name: 2, callNumber: 7 }))).toEqual({ result: 'new' });
  expect(faults).toContainEqual(expect.objectContaining({ code: 'SQLITE_READONLY' }));
  expect(() => actions.begin(action({ name: 3 }))).toThrow(expect.objectContaining({ code: 'SQLITE_READONLY' }));
  const seen = () => ({
    again: actions.begin(chat({ name: 2, callNumber: 8 })),
    changed: actions.begin(chat({ name: 2, body: 'other' })).result,
    ofAnother: actions.begin(chat({ name: 2, device: 'tablet' })).result,
  });
  const { call } = action({ callNumber: 7 });
  expect(seen()).toEqual({ again: { result: 'repeat', call }, changed: 'other_request', ofAnother: 'new' });
  database.pragma('query_only = OFF');
  expect(seen()).toMatchObject({ again: { result: 'repeat', call }, changed: 'other_request' });
  sleep(KEPT_MS);
  expect(seen()).toMatchObject({ again: { result: 'repeat', call } });
  sleep(1);
  expect(actions.begin(chat({ name: 2 })).result).toBe('new');
});

test('of a device, as many are remembered in memory as on the disk, until it is revoked', () => {
  const database = open(newHome());
  const actions = begin(database, createFakeTime().now, () => undefined);
  database.pragma('query_only = ON');
  for (let name = 0; name < MAX_ACTIONS; name++) actions.begin(action({ name, mayBeForgotten: true }));
  const one = action({ name: MAX_ACTIONS, mayBeForgotten: true });
  expect(actions.begin(one).result).toBe('full');
  expect(actions.begin({ ...one, deviceId: 'tablet' }).result).toBe('new');
  actions.forget('phone');
  expect(actions.begin(one).result).toBe('new');
});

test('another request is one that differs in anything that its handler sees', () => {
  const asked = [
    [{ method: 'POST', path: '/a' }, [], ''],
    [{ method: 'PUT', path: '/a' }, [], ''],
    [{ method: 'POST', path: '/b' }, [], ''],
    [{ method: 'POST', path: '/a', query: 'b' }, [], ''],
    [{ method: 'POST', path: '/a' }, [['accept', 'b']], ''],
    [{ method: 'POST', path: '/a' }, [], 'b'],
  ] as const;
  const hashes = asked.map(([head, headers, body]) => startRequestHash(head, headers).update(body).digest());
  expect(new Set(hashes.map((hash) => hash.toString('hex'))).size).toBe(asked.length);
});
