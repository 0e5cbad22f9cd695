/**
 * Requests under way, by the access key that they came with, so that revoking a key ends what goes on under it: in its
 * own words where its reader still listens, else by closing the connection.
 */
import type { ServerResponse } from 'node:http';
import { within, type SetTimer } from '../core/timer.ts';
import { refusalError } from './errors.ts';
import { whenClosed } from './when-closed.ts';

/** For a stream to say why it ends. A reader that has not taken that by then is cut off. */
const LAST_WORDS_MS = 1000;
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
  /** @returns a request that counts until its response is closed */
  enter(keyId: string, response: ServerResponse): LiveRequest;
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
    enter(keyId, response) {
      const requests = byKey.get(keyId) ?? new Set();
      byKey.set(keyId, requests);
      const { request, end } = createLiveRequest(response, setTimer);
      requests.add(end);
      const leave = (): void => {
        requests.delete(end);
        if (requests.size === 0 && byKey.get(keyId) === requests) byKey.delete(keyId);
      };
      whenClosed(response, leave);
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

function createLiveRequest(response: ServerResponse, setTimer: SetTimer): { request: LiveRequest; end: Ending } {
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
      const over = Promise.allSettled([handling, closing(response)]).then(() => true);
      if (await within(LAST_WORDS_MS, over, setTimer)) return 'ended';
      response.destroy();
      await within(AFTER_CUT_MS, over, setTimer);
      return 'cut';
    },
  };
}

function closing(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => whenClosed(response, resolve));
}
