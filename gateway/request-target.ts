/**
 * An address that names scheme and host (RFC 9112, 3.2.2), as proxies are sent it: origin servers must take it, too.
 * Its authority then counts in place of `Host`, for whoever judges by what name this machine was called.
 */
import type { IncomingMessage } from 'node:http';
import { RequestError } from './errors.ts';

const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\//i;
/** No user and no password: what would be read as a host by one, and not by another. */
const OURS = /^http:\/\/([^/?#@\\]+)([/?].*)?$/i;

/**
 * From here on the request can't be told from one that names its path alone.
 * @throws {RequestError} `misdirected` for another scheme than the one that is spoken here
 */
export function toOriginForm(request: IncomingMessage): void {
  const { url = '' } = request;
  if (!ABSOLUTE.test(url)) return;
  const [, authority, path = '/'] = OURS.exec(url) ?? [];
  if (authority === undefined) {
    throw new RequestError('misdirected', 'This address is not served here. Send the path alone: GET /v1/models.');
  }
  request.headers.host = authority;
  request.url = path.startsWith('/') ? path : `/${path}`;
}
