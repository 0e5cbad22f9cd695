/** Whether the clock can be right: keys expire by it, and a relay knows devices by the day. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { openDatabaseToRead } from '../../../storage/database.ts';
import { clockLagText, type ClockLag } from '../../clock-lag.ts';
import type { Check } from './check.ts';

/** This program is younger. */
const EARLIEST_MS = Date.UTC(2026, 10, 1);
const HOUR_MS = 60 * 60 * 1000;
const REMEDY = 'Set the clock, best by the network time service of this system.';

export const clock: Check = {
  name: 'clock',
  async run({ home }) {
    const nowMs = Date.now();
    const message = new Date(nowMs).toISOString();
    if (nowMs < EARLIEST_MS)
      return { state: 'failed', message: `${message} is before this version was made`, remedy: REMEDY };
    const lag = findLag(home, nowMs);
    if (lag !== undefined) return { state: 'warning', ...lag };
    const changedAtMs = (await stat(join(home, 'state.db')).catch(() => undefined))?.mtimeMs ?? 0;
    if (changedAtMs <= nowMs + HOUR_MS) return { state: 'ok', message };
    const later = new Date(changedAtMs).toISOString();
    return { state: 'failed', message: `${message}, but the service wrote at ${later}`, remedy: REMEDY };
  },
};

/** Behind the time by which things expire. */
function findLag(home: string, nowMs: number): ClockLag | undefined {
  const database = openDatabaseToRead(home);
  try {
    return database && clockLagText(database, nowMs);
  } finally {
    database?.close();
  }
}
