/** A status that is no success, as an error that says what to do about it. */
import { DownloadError } from './download-error.ts';

/** What was asked for, in the user's words. */
export interface Subject {
  /** `hf:org/repository`, or a URL without its query. */
  readonly what: string;
  /** Where the terms of a gated repository are accepted. */
  readonly page?: string;
  readonly hasToken?: boolean;
}

export function refusal({ status }: { readonly status: number }, subject: Subject): DownloadError {
  const { what } = subject;
  if (status === 401 || status === 403) return forbidden(status, subject);
  if (status === 404 || status === 410) {
    return new DownloadError('not_found', `${what} is not there (${status}). Is the name right?`);
  }
  if (status >= 500 || status === 429 || status === 408) {
    return new DownloadError('interrupted', `The server answered ${status} to ${what}. Try again later.`);
  }
  return new DownloadError('bad_answer', `The server answered ${status} to ${what}.`);
}

/** The hub answers 401 also for what is not there, so as not to tell strangers what is. */
function forbidden(status: number, { what, page, hasToken }: Subject): DownloadError {
  if (page === undefined) {
    return new DownloadError('forbidden', `${what} may not be fetched without a login (${status}).`);
  }
  const remedy =
    hasToken === true
      ? `Your HF_TOKEN gives no access: accept the terms on ${page} with its account, or check the name.`
      : `Check the name; if it is right, accept the terms on ${page} and set HF_TOKEN to a token of that account.`;
  return new DownloadError('forbidden', `${what} is gated, private or not there (${status}). ${remedy}`);
}
