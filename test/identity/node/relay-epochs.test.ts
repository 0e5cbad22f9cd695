/** The number under which a gateway registers: it grows, whatever the clock does. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openDatabase, type Database } from '../../../storage/database.ts';
import { createRelayEpochs } from '../../../identity/node/relay-epochs.ts';
import { temporaryHome } from './home.ts';

let home: string;
let remove: () => void;
let database: Database;
beforeEach(() => {
  ({ home, remove } = temporaryHome());
  database = openDatabase(home);
});
afterEach(() => {
  database.close();
  remove();
});

test('it is the time, and grows though the clock stands still or goes back, for each relay by itself', () => {
  let nowMs = 1000;
  const epochs = createRelayEpochs({ database, now: () => nowMs });
  expect([epochs.next('a'), epochs.next('a'), epochs.next('b')]).toEqual([1000, 1001, 1000]);
  nowMs = 10;
  expect([epochs.next('a'), epochs.next('b')]).toEqual([1002, 1001]);
  nowMs = 5000;
  const restarted = createRelayEpochs({ database, now: () => nowMs });
  expect([restarted.next('a'), restarted.next('b')]).toEqual([5000, 5000]);
});
