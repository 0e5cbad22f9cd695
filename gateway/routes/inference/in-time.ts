/** A list does not wait for what takes long to find out. */
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * How long a list waits for models never looked into before; a large vocabulary takes about a second to read. What is
 * not known by then stays empty in this list and is there in a later one.
 */
const LIST_TIMEOUT_MS = 2000;

/** What is found out in time, and undefined in place of the others. */
export async function inTime<Value>(
  found: readonly Promise<Value | undefined>[],
): Promise<readonly (Value | undefined)[]> {
  const timeout = new AbortController();
  const tooLong = sleep(LIST_TIMEOUT_MS, undefined, { signal: timeout.signal }).catch(() => undefined);
  const values = await Promise.all(found.map((one) => Promise.race([one, tooLong])));
  timeout.abort();
  return values;
}
