/** Where things are kept, whether they can be at the moment, the time by which they expire, and who is told of it all. */
import { randomBytes } from 'node:crypto';
import { BUSY_TIMEOUT_MS, openDatabase, probeWrite, setBusyTimeout, type Database } from '../storage/database.ts';
import { findDiskFault } from '../storage/disk-fault.ts';
import { openDurableClock } from '../storage/durable-clock.ts';
import { createStorageHealth, type StorageHealth } from '../storage/storage-health.ts';
import { createEventHub, type EventHub } from '../storage/event-hub.ts';
import { reasonOf } from './internal-error.ts';
import type { Start } from './start.ts';

export interface Storage {
  readonly database: Database;
  readonly storage: StorageHealth;
  /** For those who watch. Closed as soon as the service is to stop: what that makes happen at once is told still. */
  readonly events: EventHub;
  /** Milliseconds since 1970, by which things expire. */
  readonly now: () => number;
}

export function openStorage({ home, clock, say, onClose }: Start): Storage {
  const database = openDatabase(home);
  onClose(() => void database.close());
  const storage = createStorageHealth({ ...clock, probe: () => probeWrite(database), say });
  onClose(() => storage.close());
  const events = createEventHub(randomBytes(4).toString('hex'));
  onClose(() => events.close());
  const onError = (error: unknown): void => {
    storage.note(error);
    if (findDiskFault(error) === undefined) say(`postern: the time can't be kept${reasonOf(error)}.`);
  };
  const durableClock = openDurableClock({ ...clock, database, onError });
  onClose(() => durableClock.close());
  // What is written last may wait: nobody waits for it any more.
  onClose(() => setBusyTimeout(database, BUSY_TIMEOUT_MS.ofCommand));
  return { database, storage, events, now: () => durableClock.now() };
}
