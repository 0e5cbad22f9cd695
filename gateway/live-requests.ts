/**
 * Requests under way, by the access key that they came with, so that revoking a key ends what goes on under it: in its
 * own words where its reader still listens, else by closing the connection.
 */
import { within, type SetTimer } from '../core/timer.ts';
import { refusalError } from './errors.ts';
import type { Closing } from './pipeline/exchange.ts';

/** For a stream to say why it ends. A reader that has not taken that by then is cut off. */
const CLOSE_GRACE_MS = 1000;
/** For a handler to notice that it was cut off. One that does not is not waited for. */
const AFTER_CUT_MS = 250;

export interface LiveRequest {
  /** Fires when the key is revoked, with the refusal that its holder would now get. */
  readonly signal: AbortSignal;
  /**
   * Runs the handler, which has to heed `signal`.
   * @throws {RequestError} where the key was revoked before
   */
  run<Result>(handle: () => Promise<Result>): Promise<Result>;
}

export interface LiveRequests {
  /** @returns a request that counts until its exchange is over */
  enter(keyId: string, exchange: Closing): LiveRequest;
  count(keyId: string): number;
  /**
   * Resolves when nothing goes on under these keys, and nothing that came with them can begin; after little more than a
   * second in any case. @returns how many had to be cut off
   */
  end(keyIds: readonly string[]): Promise<number>;
}

export function createLiveRequests({ setTimer }: { readonly setTimer: SetTimer }): LiveRequests {
  const byKey = new Map<string, Set<Ending>>();
  return {
    enter(keyId, exchange) {
      const requests = byKey.get(keyId) ?? new Set();
      byKey.set(keyId, requests);
      const { request, end } = createLiveRequest(exchange, setTimer);
      requests.add(end);
      const leave = (): void => {
        requests.delete(end);
        if (requests.size === 0 && byKey.get(keyId) === requests) byKey.delete(keyId);
      };
      exchange.onClosed(leave);
      return request;
    },
    count: (keyId) => byKey.get(keyId)?.size ?? 0,
    async end(keyIds) {
      const endings = keyIds.flatMap((keyId) => [...(byKey.get(keyId) ?? [])]);
      const ended = await Promise.all(endings.map((end) => end()));
      return ended.filter((how) => how === 'cut').length;
    },
  };
}

type Ending = () => Promise<'ended' | 'cut'>;

function createLiveRequest(exchange: Closing, setTimer: SetTimer): { request: LiveRequest; end: Ending } {
  const revoked = new AbortController();
  const { signal } = revoked;
  let handling: Promise<unknown> | undefined;
  return {
    request: {
      signal,
      run(handle) {
        if (signal.aborted) return Promise.reject(refusalError('unauthenticated'));
        const result = handle();
        handling = result;
        return result;
      },
    },
    async end() {
      revoked.abort(refusalError('unauthenticated'));
      // Not begun: it will be refused, however long its body takes to arrive.
      if (handling === undefined) return 'ended';
      const over = Promise.allSettled([handling, closing(exchange)]).then(() => true);
      if (await within(CLOSE_GRACE_MS, over, setTimer)) return 'ended';
      exchange.cut();
      await within(AFTER_CUT_MS, over, setTimer);
      return 'cut';
    },
  };
}

function closing(exchange: Closing): Promise<void> {
  return new Promise((resolve) => exchange.onClosed(() => resolve()));
}
