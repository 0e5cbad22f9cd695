/**
 * Keeps web pages out: whoever reaches this server acts as the paired device, and every page in the owner's browser can
 * reach it. Pages get nothing but where the owner named their origin; the judgement is the gateway's own.
 */
import type { IncomingMessage } from 'node:http';
import { judge } from '../../gateway/guard.ts';
import { Refusal } from './failure.ts';

/** What a page's script may read beside the standard headers. */
const EXPOSED_HEADERS = 'retry-after, request-id, x-request-id, x-postern-ignored';
/** Browsers may keep a preflight's answer for this long. */
const MAX_AGE_SECONDS = '600';

export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export const ALLOW = [...METHODS, 'OPTIONS'].join(', ');

/**
 * Headers for an answer that the page behind the request may read, none where there is no such page.
 * @param allowedOrigins lower case; `*` is none
 * @throws {Refusal} for a request that is not to be answered at all
 */
export function admit(request: IncomingMessage, allowedOrigins: readonly string[]): Record<string, string> {
  const { headers, socket } = request;
  const { isLoopback, hasForeignHost, site } = judge(
    { peerAddress: socket.remoteAddress, headers },
    { hostnames: [], allowedOrigins },
  );
  if (!isLoopback) throw new Refusal('forbidden', RELAYED);
  if (hasForeignHost) throw new Refusal('foreign_host', FOREIGN_HOST);
  if (site === 'foreign' || site === 'any') throw new Refusal('cross_site', CROSS_SITE, { vary: 'origin' });
  const { origin } = headers;
  if (site === 'none' || origin === undefined) return {};
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED_HEADERS,
    vary: 'origin',
  };
}

/** Headers for the answer to `OPTIONS`. @param cors from `admit` */
export function preflightHeaders(request: IncomingMessage, cors: Record<string, string>): Record<string, string> {
  if (cors['access-control-allow-origin'] === undefined) return { allow: ALLOW };
  const requested = request.headers['access-control-request-headers'];
  const isPlainList = requested !== undefined && /^[\w!#$%&'*+.^`|~, -]{1,2048}$/.test(requested);
  return {
    ...cors,
    allow: ALLOW,
    'access-control-allow-methods': ALLOW,
    'access-control-allow-headers': isPlainList ? `content-type, authorization, ${requested}` : 'content-type',
    'access-control-max-age': MAX_AGE_SECONDS,
    vary: 'origin, access-control-request-headers',
  };
}

const RELAYED =
  'This request came through a proxy or tunnel. Only programs of this machine are let in; another one pairs a device ' +
  'of its own: "postern invite" at home.';
const FOREIGN_HOST = 'This server is called by a name of this machine, such as 127.0.0.1 or localhost.';
const CROSS_SITE =
  'A web page may not call this. Start "postern connect" with --allow-origin and its origin, or call from outside a browser.';
