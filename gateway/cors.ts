/**
 * Which web pages may read our answers, in the browser's own terms (https://fetch.spec.whatwg.org/#http-cors-protocol).
 * Pure. Policy decides what a page may do; this only tells its browser.
 */
import { EXPOSED_HEADERS, PREFLIGHT_MAX_AGE_S, type Site } from './guard.ts';
import type { AccessClass } from './policy.ts';
import type { Method } from './route.ts';

interface CorsRequest {
  readonly access: AccessClass;
  readonly site: Site;
  readonly origin: string | undefined;
}

/** Headers for an answer: none where the page is not to read it. */
export function corsHeaders({ access, site, origin }: CorsRequest): Record<string, string> {
  if (origin === undefined) return {};
  if (site === 'any' && isOpenToAny(access)) {
    return { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED_HEADERS };
  }
  if (!mayRead(site, access)) return { vary: 'origin' };
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED_HEADERS, vary: 'origin' };
}

interface PreflightRequest extends CorsRequest {
  readonly method: Method;
  /** `Access-Control-Request-Headers`. */
  readonly requestedHeaders: string | undefined;
}

/** Headers for the answer to `OPTIONS`. */
export function preflightHeaders(request: PreflightRequest): Record<string, string> {
  const allowed = corsHeaders(request);
  if (allowed['access-control-allow-origin'] === undefined) return allowed;
  const methods = new Set(['GET', 'POST', 'OPTIONS', ...(request.access === 'admin' ? ['PUT'] : []), request.method]);
  return {
    ...allowed,
    'access-control-allow-methods': [...methods].join(', '),
    'access-control-allow-headers': allowedHeaders(request),
    'access-control-max-age': PREFLIGHT_MAX_AGE_S,
    vary: 'origin, access-control-request-headers',
  };
}

/**
 * Browser SDKs send headers of their own (`x-stainless-*`, `anthropic-version`, …) and new ones with each release.
 * None of them means anything to inference, so there whatever is asked for is allowed; elsewhere the contract's two.
 */
function allowedHeaders({ access, requestedHeaders }: PreflightRequest): string {
  const isPlainList = requestedHeaders !== undefined && /^[\w!#$%&'*+.^`|~, -]{1,2048}$/.test(requestedHeaders);
  return isOpen(access) && isPlainList
    ? `Content-Type, Authorization, ${requestedHeaders}`
    : 'Content-Type, Authorization';
}

function isOpen(access: AccessClass): boolean {
  return access === 'channel' || isOpenToAny(access);
}

function isOpenToAny(access: AccessClass): boolean {
  return access === 'public' || access === 'health' || access === 'inference';
}

/** What is not a page that was named has its answer read by nobody, whatever policy says of it. */
function mayRead(site: Site, access: AccessClass): boolean {
  if (site === 'listed') return access !== 'admin';
  if (site === 'app') return access === 'public' || access === 'health' || access === 'channel';
  return site === 'own';
}
