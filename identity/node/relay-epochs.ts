/**
 * How often this gateway has registered at each relay, as a number that only grows: the newest registration wins, and one
 * that somebody recorded is never the newest.
 */
import { migrate, type Database } from '../../storage/database.ts';

const MIGRATIONS = [
  `CREATE TABLE relay_epochs (
     origin TEXT PRIMARY KEY,
     epoch INTEGER NOT NULL
   ) STRICT;`,
];

export interface RelayEpochs {
  /** The next for this relay: at least the time in milliseconds since 1970. It is stored before it is returned. */
  next(origin: string): number;
}

interface EpochOptions {
  readonly database: Database;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export function createRelayEpochs({ database, now }: EpochOptions): RelayEpochs {
  migrate(database, 'relay_epochs', MIGRATIONS);
  const advance = database
    .prepare<[string, number], number>(
      `INSERT INTO relay_epochs VALUES (?, ?)
       ON CONFLICT (origin) DO UPDATE SET epoch = max(epoch + 1, excluded.epoch) RETURNING epoch`,
    )
    .pluck();
  return { next: (origin) => advance.get(origin, now()) ?? now() };
}
