/**
 * How many requests web pages may have under way that were let in because every page is. A page whose owner wants more
 * of it is named in the settings, and then is no guest.
 */
import { ownerOf, type Caller } from './caller.ts';
import { RequestError } from './errors.ts';
import type { LiveRequest, LiveRequests } from './live-requests.ts';
import type { Closing } from './pipeline/exchange.ts';

export const REQUESTS_OF_A_PAGE = 2;
export const REQUESTS_OF_ALL_PAGES = 8;

/** Under which all of them are counted. No page and no key is called that. */
const ALL = 'pages';

const RETRY_AFTER_SECONDS = '5';

export interface Guest {
  readonly caller: Caller;
  readonly exchange: Closing;
  readonly live: LiveRequests;
}

/** @returns the request, which counts until its exchange is over, or why there is no place for it */
export function admitGuest({ caller, exchange, live }: Guest): { live: LiveRequest } | { failure: RequestError } {
  const page = ownerOf(caller);
  if (live.count(page) >= REQUESTS_OF_A_PAGE) {
    return { failure: tooMany(`This page has ${REQUESTS_OF_A_PAGE} requests under way.`) };
  }
  if (live.count(ALL) >= REQUESTS_OF_ALL_PAGES)
    return { failure: tooMany('Web pages have too many requests under way.') };
  live.enter(ALL, exchange);
  return { live: live.enter(page, exchange) };
}

function tooMany(what: string): RequestError {
  return new RequestError('rate_limited', `${what} Try again when one of them is done.`, {
    headers: { 'retry-after': RETRY_AFTER_SECONDS },
  });
}
