/**
 * Keeps web pages and other users out: whoever reaches this server acts as the paired device, and every page in the
 * owner's browser, and every program on this machine, can reach it. Pages get nothing but where the owner named their
 * origin; the judgement is the gateway's own.
 */
import type { IncomingMessage } from 'node:http';
import { EXPOSED_HEADERS, PREFLIGHT_MAX_AGE_S, provenanceOf } from '../../gateway/guard.ts';
import type { PeerProcesses } from '../../gateway/peer-process.ts';
import { RequestRefused } from './failure.ts';

export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export const ALLOW = [...METHODS, 'OPTIONS'].join(', ');

export interface Admitting {
  /** Lower case; `*` is none. */
  readonly allowedOrigins: readonly string[];
  readonly peers: PeerProcesses;
}

/**
 * Headers for an answer that the page behind the request may read, none where there is no such page.
 * @throws {RequestRefused} for a request that is not to be answered at all
 */
export async function admit(
  request: IncomingMessage,
  { allowedOrigins, peers }: Admitting,
): Promise<Record<string, string>> {
  const { headers, headersDistinct, socket } = request;
  // Two names may mean two machines, depending on who reads them (RFC 9112, 3.2).
  if ((headersDistinct['host']?.length ?? 0) > 1)
    throw new RequestRefused('bad_request', 'The request has more than one Host header.');
  const { isLoopback, host, site } = provenanceOf(
    { peerAddress: socket.remoteAddress, peer: await peers.of(socket), headers },
    { hostnames: [], machineNames: () => [], allowedOrigins },
  );
  if (!isLoopback) throw new RequestRefused('forbidden', RELAYED);
  if (host !== 'own') throw new RequestRefused('foreign_host', FOREIGN_HOST);
  if (site === 'foreign' || site === 'any') throw new RequestRefused('cross_site', CROSS_SITE, { vary: 'origin' });
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
    'access-control-max-age': PREFLIGHT_MAX_AGE_S,
    vary: 'origin, access-control-request-headers',
  };
}

const RELAYED =
  'This request came through a proxy or tunnel, or from another user. Only programs of the user who runs "postern ' +
  'connect" are let in; anyone else pairs a device of their own: "postern invite" at home.';
const FOREIGN_HOST = 'Call this server 127.0.0.1 or localhost.';
const CROSS_SITE =
  'A web page may not call this. Start "postern connect" with --allow-origin and its origin, or call from outside a browser.';
