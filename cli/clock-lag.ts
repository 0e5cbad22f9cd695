/** A clock that is behind the latest time that is certain, in words. */
import type { Database } from '../storage/database.ts';
import { latestTimeMs } from '../storage/durable-clock.ts';
import { localTime } from './local-time.ts';

/** Less is how clocks are put right all the time. */
const WORTH_SAYING_MS = 60_000;

export interface ClockLag {
  readonly message: string;
  readonly remedy: string;
}

/** Undefined where the clock is not behind. @param nowMs what it says */
export function clockLagText(database: Database, nowMs: number): ClockLag | undefined {
  const latestMs = latestTimeMs(database);
  if (latestMs - nowMs < WORTH_SAYING_MS) return undefined;
  return {
    message:
      `this machine's clock says ${timeText(nowMs)}, and Postern has seen ${timeText(latestMs)} already: ` +
      'what had expired by then stays expired',
    remedy: 'Put the clock right. If it was ahead before and is right now, say "postern serve --trust-clock" once.',
  };
}

function timeText(ms: number): string {
  return localTime(new Date(ms).toISOString());
}
