/** Waits for a condition, never for a time: looks again each turn until it holds. The test's own limit ends it. */
import { setTimeout as sleep } from 'node:timers/promises';

export async function until<Value>(
  look: () => Promise<Value | false | undefined> | Value | false | undefined,
): Promise<Value> {
  for (;;) {
    const value = await look();
    if (value !== false && value !== undefined) return value;
    await sleep(5);
  }
}
