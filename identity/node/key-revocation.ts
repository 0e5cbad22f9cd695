/**
 * How keys are revoked: refused in memory first, then what goes on under them is told to end, then it is written. So neither
 * a disk that is full nor anything that hangs keeps a revoked key alive.
 */
import type { Database } from '../../storage/database.ts';
import type { AccessKeyTable } from './access-key-table.ts';

/**
 * Ends what goes on under these keys, and takes no longer than it has to. Called when they are refused already and before
 * anything is written, so it happens even where nothing can be. @returns how much had to be cut off
 */
export type RevocationListener = (kids: readonly string[]) => Promise<number | void> | number | void;

export interface Revocation {
  /** `already`: it was revoked before; its listeners are told again. */
  readonly result: 'revoked' | 'already' | 'unknown';
  /** How much went on under it that did not end by itself. */
  readonly cut: number;
  /** False where the disk has not taken it: it is refused, and would count again if the process ended now. */
  readonly isDurable: boolean;
}

/** Of a key or device that there is none of. */
export const UNKNOWN_REVOCATION: Revocation = { result: 'unknown', cut: 0, isDurable: true };

/** Of several keys. */
export interface RevocationOfKeys extends Pick<Revocation, 'cut' | 'isDurable'> {
  /** Those that were not revoked before. */
  readonly revoked: readonly string[];
}

/**
 * Takes a write that a disk did not take, to try it again until it works. It must be right to run it twice.
 * @returns false where trying again does not help
 */
export type Postpone = (error: unknown, write: () => void) => boolean;

/** Something that ends with certain keys, and in the same transaction. */
export interface RevocationHook {
  /** The keys that are revoked together with these. */
  linkedKeys(kids: readonly string[]): readonly string[];
  /** Called inside the transaction in which these keys stopped to count; where it throws, they still do. */
  markRevoked(kids: readonly string[]): void;
}

interface KeyRevocation {
  /** @throws what `write` threw and nobody postponed, or else what a listener threw, after all of them had their turn */
  readonly revoke: (named: readonly string[]) => Promise<RevocationOfKeys>;
  /** Revoked, and not written yet. */
  readonly isRefused: (kid: string) => boolean;
  /** Only what is written, as part of a larger transaction. @returns the keys and all that go with them */
  readonly markRevoked: (named: readonly string[]) => readonly string[];
  /** Only what follows that. */
  readonly endUnder: (kids: readonly string[]) => Promise<void>;
  /** As the table says, but for what is refused. */
  readonly state: AccessKeyTable['state'];
  readonly onRevocation: (listener: RevocationListener) => () => void;
  readonly join: (hook: RevocationHook) => void;
}

interface KeyRevocationOptions {
  readonly database: Database;
  readonly table: AccessKeyTable;
  readonly nowS: () => number;
  /** Called with each key inside the transaction. */
  readonly record: (kid: string) => void;
  /** Where there is none, a revocation that can't be written fails. */
  readonly postpone?: Postpone | undefined;
}

interface Refused {
  readonly kids: readonly string[];
  /** Those that counted until now. */
  readonly counting: readonly string[];
}

export function createKeyRevocation(options: KeyRevocationOptions): KeyRevocation {
  const { database, table, nowS, record, postpone } = options;
  const listeners = new Set<RevocationListener>();
  const hooks: RevocationHook[] = [];
  const refused = new Set<string>();
  const withCompanions = (named: readonly string[]): readonly string[] => [
    ...new Set([...named, ...hooks.flatMap((hook) => hook.linkedKeys(named))]),
  ];
  const markRevoked = database.transaction((kids: readonly string[]) => {
    const marked = kids.filter((kid) => table.revoke(kid, nowS()));
    for (const kid of marked) record(kid);
    for (const hook of hooks) hook.markRevoked(marked);
  });
  const write = (kids: readonly string[]): void => {
    markRevoked.immediate(kids);
    flush(database);
    for (const kid of kids) refused.delete(kid);
  };
  const writeOrPostpone = async ({ kids, counting }: Refused): Promise<Omit<RevocationOfKeys, 'cut'>> => {
    try {
      write(kids);
      return { revoked: counting, isDurable: true };
    } catch (error) {
      if (postpone?.(error, () => write(kids)) !== true) throw error;
      return { revoked: counting, isDurable: false };
    }
  };
  return {
    async revoke(named) {
      const kids = withCompanions(named);
      const counting = kids.filter((kid) => !refused.has(kid) && table.state(kid)?.revokedAtS === undefined);
      for (const kid of kids) refused.add(kid);
      const [ended, written] = await Promise.allSettled([endAll(listeners, kids), writeOrPostpone({ kids, counting })]);
      if (written.status === 'rejected') throw written.reason;
      if (ended.status === 'rejected') throw ended.reason;
      return { ...written.value, cut: ended.value };
    },
    isRefused: (kid) => refused.has(kid),
    markRevoked(named) {
      const kids = withCompanions(named);
      markRevoked.immediate(kids);
      return kids;
    },
    async endUnder(kids) {
      flush(database);
      await endAll(listeners, kids);
    },
    state(kid) {
      const state = table.state(kid);
      return state !== undefined && refused.has(kid) ? { ...state, revokedAtS: nowS() } : state;
    },
    onRevocation(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    join: (hook) => void hooks.push(hook),
  };
}

/**
 * A revocation is to outlive a power cut, too: this puts the write-ahead log on the disk (SQLite, "PRAGMA synchronous": in
 * NORMAL mode only a checkpoint does).
 */
function flush(database: Database): void {
  if (database.inTransaction) return;
  try {
    database.pragma('wal_checkpoint(PASSIVE)');
  } catch {
    // A disk that has no room for that has the log all the same, which survives the process.
  }
}

/** Begins at once. @returns how much had to be cut off */
async function endAll(listeners: ReadonlySet<RevocationListener>, kids: readonly string[]): Promise<number> {
  const outcomes = await Promise.allSettled([...listeners].map(async (listener) => listener(kids)));
  const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  if (failures.length > 0) throw new AggregateError(failures, 'revoked, but something under the key did not end');
  return outcomes.reduce((cut, outcome) => cut + (outcome.status === 'fulfilled' ? (outcome.value ?? 0) : 0), 0);
}
