/** Requests as they come, from the log of a service that runs here or elsewhere. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoggedRequest, RequestLogReader } from '../gateway/request-log/request-log-reader.ts';
import type { RequestFilter } from '../gateway/request-log/request-query.ts';

/** How soon a new row is seen. */
const POLL_MS = 200;

export type PrintRequests = (requests: readonly LoggedRequest[]) => void;

interface Following {
  readonly filter: RequestFilter;
  /** The last request that was seen already. */
  readonly from: number;
  readonly print: PrintRequests;
  readonly stop: AbortSignal;
}

/** Until `stop` fires. */
export async function followRequests(
  reader: RequestLogReader,
  { filter, from, print, stop }: Following,
): Promise<void> {
  let lastId = from;
  while (!stop.aborted) {
    const newestId = reader.lastId();
    const fresh = reader.after(lastId, filter);
    print(fresh);
    lastId = fresh.at(-1)?.id ?? Math.max(lastId, newestId);
    await sleep(POLL_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}
