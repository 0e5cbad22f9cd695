/**
 * Where a request really comes from: the one judgement that decides whether a caller counts as being on this machine,
 * and whether a web page is behind it. Pure; a second loopback server of ours asks the same questions.
 *
 * A page in the owner's browser can reach every loopback server. It can't forge `Host`, `Origin` or `Sec-Fetch-Site`,
 * and those three are what is judged here (DNS rebinding shows as a foreign `Host`, a cross-site call as a foreign
 * `Origin`). A reverse proxy or tunnel on this machine connects from loopback too; it announces itself by a
 * forwarding header, and whoever is behind it is not local.
 */
import { isIP } from 'node:net';

export interface RequestOrigin {
  /** The socket's peer address, as the operating system tells it. */
  readonly peerAddress: string | undefined;
  /** Header names in lower case, as Node gives them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export interface GuardSettings {
  /** Further names under which this machine is reached, lower case, without port. */
  readonly hostnames: readonly string[];
  /** Origins that may call from a browser (`https://app.example`), or `*`. */
  readonly allowedOrigins: readonly string[];
  /** Where the app is served that devices are paired with. */
  readonly appOrigin?: string | undefined;
}

/**
 * What kind of page stands behind a request.
 * - `none`: no page at all, or one that the owner opened by typing its address
 * - `own`: a page that this very server sent
 * - `listed`: an origin that the owner named
 * - `app`: the app that devices are paired with, where the owner did not name its origin among the others
 * - `any`: some other page, while the owner lets any origin in (`*`)
 * - `foreign`: some other page
 */
export type Site = 'none' | 'own' | 'listed' | 'app' | 'any' | 'foreign';

export interface Provenance {
  readonly isLoopback: boolean;
  readonly site: Site;
  /** Of the page, where its browser tells: `https://app.example`, in lower case. */
  readonly origin: string | undefined;
  /** True for a loopback request that was sent to a name which is not this machine's: DNS rebinding. */
  readonly hasForeignHost: boolean;
}

/** Any of these means that somebody relayed the request, so the socket's address says nothing about the caller. */
const FORWARDING_HEADERS: ReadonlySet<string> = new Set(['forwarded', 'x-real-ip', 'via']);
const FORWARDING_PREFIXES: readonly string[] = ['x-forwarded-', 'cf-', 'tailscale-'];

export function judge({ peerAddress, headers }: RequestOrigin, settings: GuardSettings): Provenance {
  const isLoopback = isLoopbackAddress(peerAddress) && !isForwarded(headers);
  const host = headers['host'];
  return {
    isLoopback,
    site: siteOf(headers, settings),
    origin: originOf(headers),
    hasForeignHost: isLoopback && host !== undefined && !isOwnHost(single(host), settings.hostnames),
  };
}

/** 127.0.0.0/8, ::1, and the former as an IPv4-mapped IPv6 address. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false;
  const v4 = address.toLowerCase().startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
  return address === '::1' || (isIP(v4) === 4 && v4.startsWith('127.'));
}

/** Somebody in between says so: the socket's address is theirs, and the caller's may be anywhere. */
export function isForwarded(headers: RequestOrigin['headers']): boolean {
  return Object.keys(headers).some(isForwardingHeader);
}

function isForwardingHeader(name: string): boolean {
  return FORWARDING_HEADERS.has(name) || FORWARDING_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** An IP literal can't be rebound, so it needs no list; `*.localhost` never leaves the machine (RFC 6761 §6.3). */
function isOwnHost(host: string, hostnames: readonly string[]): boolean {
  const name = hostnameOf(host);
  if (name === undefined) return false;
  if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
  return name === 'localhost' || name.endsWith('.localhost') || hostnames.includes(name);
}

/** The name in a `Host` header, lower case and without port or final dot; undefined for what is no host at all. */
function hostnameOf(host: string): string | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::\d{1,5})?$/i.exec(host);
  return match?.[1]?.toLowerCase().replace(/\.$/, '');
}

function siteOf(headers: RequestOrigin['headers'], settings: GuardSettings): Site {
  const origin = headers['origin'];
  if (origin !== undefined) return siteOfOrigin(single(origin), single(headers['host'] ?? ''), settings);
  // Browsers leave `Origin` out of plain GETs, but say where those come from here (Fetch Metadata).
  const fetchSite = headers['sec-fetch-site'];
  if (fetchSite === undefined || fetchSite === 'none') return 'none';
  return fetchSite === 'same-origin' ? 'own' : unlisted(settings);
}

/** `null` is what browsers say of a page whose origin is nobody's business, and of many such pages. */
function originOf({ origin }: RequestOrigin['headers']): string | undefined {
  return typeof origin === 'string' && origin !== 'null' ? origin.toLowerCase() : undefined;
}

function siteOfOrigin(origin: string, host: string, settings: GuardSettings): Site {
  const lower = origin.toLowerCase();
  if (lower === `http://${host.toLowerCase()}` || lower === `https://${host.toLowerCase()}`) return 'own';
  if (settings.allowedOrigins.includes(lower)) return 'listed';
  return lower === settings.appOrigin?.toLowerCase() ? 'app' : unlisted(settings);
}

function unlisted({ allowedOrigins }: GuardSettings): Site {
  return allowedOrigins.includes('*') ? 'any' : 'foreign';
}

/** A header that came twice is no header that we would believe. */
function single(value: string | readonly string[]): string {
  return typeof value === 'string' ? value : value.join(', ');
}
