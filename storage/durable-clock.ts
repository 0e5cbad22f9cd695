/**
 * The time by which things expire. A clock that is set back, by hand, by an empty battery or by a restored machine,
 * revives nothing: the latest time that is certain is kept in `state.db`, and time goes on from there at least.
 *
 * A clock that was wrongly ahead once must not make everything expire for good. So a time is certain only when the
 * clock has gone along with the monotonic one for five minutes; until then it is believed, and not kept. From then on
 * certain time passes as the monotonic clock does, whatever the other says.
 */
import { migrate, versionOf, type Database } from './database.ts';

/** How long a clock must go steadily. A machine that gets its time from the network has it by then. */
export const STEADY_MS = 5 * 60_000;
/** The clock is adjusted in small steps all the time (NTP slews at 0.5 ms a second). */
const TOLERANCE_MS = 1000;
const KEEP_EVERY_MS = 60_000;

const MODULE = 'clock';
const MIGRATIONS = [
  `CREATE TABLE clock (
     id INTEGER PRIMARY KEY CHECK (id = 1),
     latest_ms INTEGER NOT NULL
   ) STRICT;`,
];

export interface DurableClock {
  /** Whole milliseconds since 1970: what the clock says, or the latest certain time where that is later. */
  now(): number;
  /** Keeps it a last time, if it can. */
  close(): void;
}

interface ClockOptions {
  readonly database: Database;
  /** What the machine's clock says, in milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds that never go back, with fractions. */
  readonly elapsed: () => number;
  readonly setTimer: (delayMs: number, run: () => void) => () => void;
  /** When it could not be kept. It is tried again. */
  readonly onError: (error: unknown) => void;
}

export function openDurableClock({ database, now, elapsed, setTimer, onError }: ClockOptions): DurableClock {
  const mark = openMark(database);
  const certain = createCertainTime({ latestMs: mark.read(), now, elapsed });
  const keep = (): void => mark.write(certain.latestMs());
  let cancel = (): void => undefined;
  const keepSoon = (): void => {
    cancel = setTimer(KEEP_EVERY_MS, () => {
      attempt(keep, onError);
      keepSoon();
    });
  };
  keepSoon();
  return {
    // The monotonic clock has fractions, which tables of whole milliseconds do not take.
    now: () => Math.floor(Math.max(now(), certain.latestMs())),
    close() {
      cancel();
      attempt(keep, onError);
    },
  };
}

/** The same for a program that only looks, or makes one change. @param nowMs what the machine's clock says, whole */
export function durableNow(database: Database, nowMs: number): number {
  return Math.max(nowMs, latestTimeMs(database));
}

/** For an owner whose clock was ahead, so that nothing is judged by that any more. @param nowMs the right time, whole */
export function trustClock(database: Database, nowMs: number): void {
  openMark(database).replace(nowMs);
}

/** The latest time that was certain, in milliseconds since 1970; 0 where there is none yet. Changes nothing. */
export function latestTimeMs(database: Database): number {
  return versionOf(database, MODULE) === 0 ? 0 : (readMark(database) ?? 0);
}

function readMark(database: Database): number | undefined {
  return database.prepare<[], number>('SELECT latest_ms FROM clock').pluck().get();
}

function openMark(database: Database) {
  migrate(database, MODULE, MIGRATIONS);
  const advance = database.prepare<[number]>(
    `INSERT INTO clock VALUES (1, ?)
     ON CONFLICT (id) DO UPDATE SET latest_ms = max(latest_ms, excluded.latest_ms)`,
  );
  const replace = database.prepare<[number]>('REPLACE INTO clock VALUES (1, ?)');
  return {
    read: () => readMark(database) ?? 0,
    write: (ms: number) => void advance.run(Math.floor(ms)),
    replace: (ms: number) => void replace.run(ms),
  };
}

interface CertainTimeOptions extends Pick<ClockOptions, 'now' | 'elapsed'> {
  readonly latestMs: number;
}

function createCertainTime({ latestMs, now, elapsed }: CertainTimeOptions): { latestMs(): number } {
  /** Certain at a moment of the monotonic clock. */
  let certain = { ms: latestMs, at: elapsed() };
  /** Since when the two clocks have gone alike, and how far they are apart. */
  let steady = { since: elapsed(), apartMs: now() - elapsed() };
  return {
    latestMs() {
      const at = elapsed();
      const clockMs = now();
      const apartMs = clockMs - at;
      const hasJumped = Math.abs(apartMs - steady.apartMs) > TOLERANCE_MS;
      steady = { since: hasJumped ? at : steady.since, apartMs };
      // Nothing is certain yet of a folder that has never had a time.
      const passed = certain.ms === 0 ? 0 : certain.ms + at - certain.at;
      const isCertain = at - steady.since >= STEADY_MS;
      certain = { ms: isCertain ? Math.max(passed, clockMs) : passed, at };
      return certain.ms;
    },
  };
}

function attempt(run: () => void, onError: (error: unknown) => void): void {
  try {
    run();
  } catch (error) {
    onError(error);
  }
}
