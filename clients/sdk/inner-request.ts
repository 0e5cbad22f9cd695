/** What the arguments of `fetch` come to inside the channel. */
import { EMPTY } from '../../channel/bytes.ts';
import type { HeaderList } from '../../channel/head.ts';
import { REQUEST_HEADERS } from '../../channel/request-bounds.ts';

export interface InnerRequest {
  readonly method: string;
  readonly path: string;
  readonly query?: string;
  readonly headers: HeaderList;
  readonly body: Uint8Array;
  /** Has no effect, so it may be sent twice (RFC 9110 §9.2.1). */
  readonly isSafe: boolean;
}

/** Where a path without an origin belongs. The origin is never looked at. */
const ANY_ORIGIN = 'http://gateway.invalid';
const TEXT = 'text/plain;charset=UTF-8';
const HTTP = new Set(['http:', 'https:']);

/** Collects the body. @throws TypeError for what `fetch` takes for none either */
export async function readRequest(input: string | URL | Request, init: RequestInit = {}): Promise<InnerRequest> {
  const givenBody = init.body ?? undefined;
  const request = new Request(input instanceof Request ? input : urlOf(input), {
    ...init,
    body: null,
    // It is followed elsewhere, and a request would never let go of it.
    signal: null,
  });
  const { protocol, pathname, search } = new URL(request.url);
  if (!HTTP.has(protocol)) throw new TypeError(`a gateway speaks http, not ${protocol}`);
  const isSafe = request.method === 'GET' || request.method === 'HEAD';
  if (isSafe && givenBody !== undefined) throw new TypeError('a request with the method GET or HEAD has no body');
  const body = await readBody(givenBody ?? request);
  return {
    method: request.method,
    path: pathname,
    ...(search === '' ? {} : { query: search.slice(1) }),
    headers: sentHeaders(request.headers, body.contentType),
    body: body.bytes,
    isSafe,
  };
}

interface Body {
  readonly bytes: Uint8Array;
  /** What `fetch` calls this kind of body where nobody else does (Fetch standard §5.1, "extract a body"). */
  readonly contentType: string | null;
}

/** Text and bytes are what most bodies are, and read without the streams that all others go through. */
async function readBody(body: BodyInit | Request): Promise<Body> {
  if (typeof body === 'string') return { bytes: new TextEncoder().encode(body), contentType: TEXT };
  if (body instanceof Uint8Array) return { bytes: body.slice(), contentType: null };
  if (body instanceof Request && body.body === null) return { bytes: EMPTY, contentType: null };
  // The body is the part of a request that platforms differ in; a response takes all kinds of them everywhere.
  const carrier = body instanceof Request ? body : new Response(body);
  return { bytes: new Uint8Array(await carrier.arrayBuffer()), contentType: carrier.headers.get('content-type') };
}

/**
 * A path, or a whole address. To `fetch`, `//name/x` names another host; here that would quietly become the path `/x`,
 * where whoever put it together most likely meant a path that begins with an empty segment. So it is neither.
 */
function urlOf(input: string | URL): URL {
  const url = new URL(input, ANY_ORIGIN);
  if (url.origin !== ANY_ORIGIN && !URL.canParse(input))
    throw new TypeError('an address without "http:" in front may not begin with two slashes');
  return url;
}

/** @param contentType of the body, where the headers have none: of a form it names the boundary */
function sentHeaders(headers: Headers, contentType: string | null): HeaderList {
  // The gateway drops all others unread, so that keys of other services are not sent at all.
  const sent = [...headers].filter(([name]) => REQUEST_HEADERS.has(name));
  if (contentType === null || headers.has('content-type')) return sent;
  return [...sent, ['content-type', contentType]];
}
