import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  createResponseStore,
  RESPONSE_LIFETIME_MS,
  type ResponseStore,
  type StoredResponse,
  type StoreLimits,
} from '../../../core/responses/response-store.ts';
import { openDatabase, type Database } from '../../../storage/database.ts';
import { runs } from '../../support/sampling.ts';

let home: string;
let database: Database;
let time: number;
let store: ResponseStore;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'postern-responses-'));
  time = 1_700_000_000_000;
  open();
});
afterEach(() => {
  database.close();
  rmSync(home, { recursive: true, force: true });
});

function open(limits?: StoreLimits): void {
  database = openDatabase(home);
  store = createResponseStore({ database, now: () => time, ...(limits === undefined ? {} : { limits }) });
}

const response = (id: string, previousId?: string): StoredResponse => ({
  id,
  previousId,
  input: [{ text: `to ${id}` }],
  body: { id, output: [`from ${id}`] },
});
const idsOf = (owner: string, id: string) => store.conversation(owner, id)?.map((one) => one.id);
const rowCount = () => database.prepare<[], { n: number }>('SELECT count(*) AS n FROM responses').get()?.n;

describe('what is kept', () => {
  test('survives closing and opening the database', () => {
    store.save('owner', response('a'));
    store.save('owner', response('b', 'a'));
    database.close();
    open();
    expect(store.find('owner', 'b')).toEqual(response('b', 'a'));
    expect(store.conversation('owner', 'b')).toEqual([response('a'), response('b', 'a')]);
  });

  test('is nobody else’s: not to read, not to go on from, not to delete', () => {
    store.save('0xa', response('a'));
    for (const other of ['0xb', 'owner', 'master', '0xA', '']) {
      expect(store.find(other, 'a')).toBeUndefined();
      expect(store.conversation(other, 'a')).toBeUndefined();
      expect(store.delete(other, 'a')).toBe(false);
    }
    // Even a response that claims to go on from a stranger's gets nothing of it.
    store.save('0xb', response('b', 'a'));
    expect(store.conversation('0xb', 'b')).toBeUndefined();
    expect(store.find('0xa', 'a')).toEqual(response('a'));
  });

  test('branches: two responses may go on from the same one', () => {
    store.save('owner', response('a'));
    store.save('owner', response('b', 'a'));
    store.save('owner', response('c', 'a'));
    expect(idsOf('owner', 'b')).toEqual(['a', 'b']);
    expect(idsOf('owner', 'c')).toEqual(['a', 'c']);
  });
});

describe('how long', () => {
  test('24 hours to the millisecond, then the row is gone too', () => {
    store.save('owner', response('a'));
    time += RESPONSE_LIFETIME_MS - 1;
    expect(store.find('owner', 'a')).toBeDefined();
    time += 1;
    expect(store.find('owner', 'a')).toBeUndefined();
    expect(store.conversation('owner', 'a')).toBeUndefined();
    expect(store.delete('owner', 'a')).toBe(false);
    store.save('owner', response('b'));
    expect(rowCount()).toBe(1);
  });

  test('what expired while the service was down is removed when it starts', () => {
    store.save('owner', response('a'));
    database.close();
    time += RESPONSE_LIFETIME_MS;
    open();
    expect(rowCount()).toBe(0);
  });

  test('a conversation that goes on for longer stays whole, but its old responses cannot be fetched', () => {
    store.save('owner', response('a'));
    time += RESPONSE_LIFETIME_MS - 1;
    store.save('owner', response('b', 'a'));
    time += RESPONSE_LIFETIME_MS - 1;
    store.save('owner', response('c', 'b'));
    expect(store.find('owner', 'a')).toBeUndefined();
    expect(store.find('owner', 'b')).toBeDefined();
    expect(idsOf('owner', 'c')).toEqual(['a', 'b', 'c']);
    time += RESPONSE_LIFETIME_MS;
    store.save('owner', response('d'));
    expect(rowCount()).toBe(1);
  });
});

describe('how much', () => {
  test('the oldest of the same owner go first, and what rested on them says that it is no longer whole', () => {
    database.close();
    open({ maxResponses: 2, maxBytes: 1_000_000 });
    store.save('other', response('x'));
    for (const [id, previous] of [['a'], ['b', 'a'], ['c', 'b']] as const) {
      time += 1;
      store.save('owner', response(id, previous));
    }
    expect(store.find('owner', 'a')).toBeUndefined();
    expect(store.find('owner', 'c')).toBeDefined();
    expect(store.conversation('owner', 'c')).toBeUndefined();
    expect(store.find('other', 'x')).toBeDefined();
  });

  test('bytes count too, and one response alone is never too much', () => {
    database.close();
    open({ maxResponses: 100, maxBytes: 100 });
    store.save('owner', response('a'));
    store.save('owner', response('b'));
    expect(store.find('owner', 'a')).toBeDefined();
    store.save('owner', { ...response('c'), body: 'x'.repeat(1000) });
    expect(rowCount()).toBe(1);
    expect(store.find('owner', 'c')).toBeDefined();
  });
});

describe('deleting', () => {
  test('removes the row when nothing rests on it', () => {
    store.save('owner', response('a'));
    expect(store.delete('owner', 'a')).toBe(true);
    expect(store.find('owner', 'a')).toBeUndefined();
    expect(rowCount()).toBe(0);
    expect(store.delete('owner', 'a')).toBe(false);
  });

  test('what later responses rest on goes with the last of them', () => {
    store.save('owner', response('a'));
    store.save('owner', response('b', 'a'));
    store.save('owner', response('c', 'b'));
    expect(store.delete('owner', 'a')).toBe(true);
    expect(store.delete('owner', 'b')).toBe(true);
    expect(store.conversation('owner', 'a')).toBeUndefined();
    expect(idsOf('owner', 'c')).toEqual(['a', 'b', 'c']);
    expect(store.delete('owner', 'c')).toBe(true);
    expect(rowCount()).toBe(0);
  });
});

/** The same store, told naively: everything is kept for ever, and each question is answered by walking. */
class Model {
  readonly all = new Map<string, { owner: string; previous: string | undefined; at: number; deleted: boolean }>();
  find(owner: string, id: string): boolean {
    const one = this.all.get(id);
    return one !== undefined && one.owner === owner && !one.deleted && time < one.at + RESPONSE_LIFETIME_MS;
  }
  conversation(owner: string, id: string): string[] | undefined {
    if (!this.find(owner, id)) return undefined;
    const ids: string[] = [];
    for (let at: string | undefined = id; at !== undefined; at = this.all.get(at)?.previous) ids.unshift(at);
    return ids;
  }
}

test('any history of saving, going on, deleting, waiting and restarting answers as the naive store would', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('save' as const), owner: fc.constantFrom('a', 'b'), previous: fc.option(fc.nat(9)) }),
    fc.record({ kind: fc.constant('delete' as const), owner: fc.constantFrom('a', 'b'), which: fc.nat(9) }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(RESPONSE_LIFETIME_MS) }),
    fc.constant({ kind: 'restart' as const }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      database.exec('DELETE FROM responses');
      const model = new Model();
      for (const one of steps) {
        const known = [...model.all.keys()];
        if (one.kind === 'wait') time += one.ms;
        else if (one.kind === 'restart') {
          database.close();
          open();
        } else if (one.kind === 'delete') {
          const id = known.at(one.which) ?? 'none';
          const found = model.find(one.owner, id);
          expect(store.delete(one.owner, id)).toBe(found);
          if (found) model.all.get(id)!.deleted = true;
        } else {
          const asked = one.previous === null ? undefined : known.at(one.previous);
          // As the route does: only what can be asked for can be gone on from.
          const previous = asked !== undefined && model.find(one.owner, asked) ? asked : undefined;
          const id = `r${model.all.size}`;
          store.save(one.owner, response(id, previous));
          model.all.set(id, { owner: one.owner, previous, at: time, deleted: false });
        }
        for (const id of model.all.keys()) {
          for (const owner of ['a', 'b']) {
            expect(store.find(owner, id) !== undefined).toBe(model.find(owner, id));
            expect(idsOf(owner, id)).toEqual(model.conversation(owner, id));
          }
        }
      }
    }),
    runs(1000),
  );
});

describe('guests', () => {
  const few = { maxResponses: 2, maxBytes: 1_000_000 };

  test('have less room each, and push out their own', () => {
    database.close();
    database = openDatabase(home);
    store = createResponseStore({
      database,
      now: () => time,
      guestLimits: { each: few, all: { ...few, maxResponses: 9 } },
    });
    store.saveForGuest('page b', response('b'));
    for (const id of ['a1', 'a2', 'a3']) store.saveForGuest('page a', response(id));
    expect(['a1', 'a2', 'a3'].map((id) => store.find('page a', id)?.id)).toEqual([undefined, 'a2', 'a3']);
    expect(store.find('page b', 'b')).toEqual(response('b'));
  });

  test('share one room, however many they are: where it is full nobody is pushed out, until something expires', () => {
    database.close();
    database = openDatabase(home);
    store = createResponseStore({ database, now: () => time, guestLimits: { each: few, all: few } });
    store.save('owner', response('o'));
    store.saveForGuest('page a', response('a'));
    expect(store.hasRoomForGuests()).toBe(true);
    store.saveForGuest('page b', response('b'));
    expect(store.hasRoomForGuests()).toBe(false);
    expect(store.saveForGuest('page c', response('c'))).toBe(false);
    store.save('owner', response('p'));
    expect(store.find('page c', 'c')).toBeUndefined();
    expect([store.find('page a', 'a'), store.find('page b', 'b')]).toEqual([response('a'), response('b')]);
    expect([store.find('owner', 'o'), store.find('owner', 'p')]).toEqual([response('o'), response('p')]);
    time += RESPONSE_LIFETIME_MS;
    expect(store.hasRoomForGuests()).toBe(true);
  });
});
