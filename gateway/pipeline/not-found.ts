/** The answer to an address that is none: it says what is wrong, where that is how clients put addresses together. */
import { RequestError } from '../errors.ts';
import { withoutAlias } from '../path-alias.ts';

/** @param url as the client wrote it; nothing of it is repeated */
export function notFound(url: string): RequestError {
  return new RequestError('not_found', `There is nothing at this address. ${remedy(url.replace(/[?#].*$/s, ''))}`);
}

function remedy(path: string): string {
  if (path.includes('//')) return 'It has two slashes in a row: check the base URL of the client.';
  const rest = withoutAlias(path);
  if (withoutAlias(rest) !== rest) {
    return 'It has more than one prefix (/v1, /api): leave one out of the base URL of the client.';
  }
  return 'GET /openapi.json lists all endpoints.';
}
