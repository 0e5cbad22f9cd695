/**
 * Where a request really comes from: the one judgement that decides whether a caller counts as being on this machine,
 * and whether a web page is behind it. Pure; a second loopback server of ours asks the same questions.
 *
 * A page in the owner's browser can reach every loopback server. It can't forge `Host`, `Origin` or `Sec-Fetch-Site`,
 * and those three are what is judged here (DNS rebinding shows as a foreign `Host`, a cross-site call as a foreign
 * `Origin`). A reverse proxy, a tunnel and other users' programs connect from loopback too: they show by whose process
 * it is, where the system tells that, and some by a forwarding header. Whoever is behind them is not local.
 */
import { isIP } from 'node:net';
import type { PeerProcess } from './peer-process.ts';

/** What a page's script may read of an answer beside the standard headers. */
export const EXPOSED_HEADERS = 'retry-after, x-should-retry, request-id, x-request-id, x-postern-ignored';
/** Browsers may keep a preflight's answer for this long. */
export const PREFLIGHT_MAX_AGE_S = '600';

export interface RequestOrigin {
  /** The socket's peer address, as the operating system tells it. */
  readonly peerAddress: string | undefined;
  /** Whose process is there. Of no meaning for an address of another machine. */
  readonly peer: PeerProcess;
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
  /** Further names that lead to this machine, its network addresses among them; see `Host`. Lower case. */
  readonly machineNames: () => readonly string[];
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

/**
 * What the name is worth by which this machine was called.
 * - `own`: it means this machine and nothing else (loopback literals, `localhost`), or its owner listed it
 * - `ambiguous`: it may mean this machine, and to others another one (its host name, `*.local`, its network addresses),
 *   so that a page from there could have been put in its place; or no name was given (HTTP/1.0)
 * - `foreign`: another name. A page that calls by it comes from there, whatever DNS says now (rebinding)
 */
export type Host = 'own' | 'ambiguous' | 'foreign';

export interface Provenance {
  /** From a process of our own user on this machine, as far as the system tells. */
  readonly isLoopback: boolean;
  readonly site: Site;
  /** Of the page, where its browser tells: `https://app.example`, in lower case. */
  readonly origin: string | undefined;
  /** Asked of loopback requests alone; callers from elsewhere may use any name. */
  readonly host: Host;
}

/**
 * What every answer tells browsers: to take its content for what it says it is, and to let no other page embed it
 * (https://fetch.spec.whatwg.org/#cross-origin-resource-policy-header). A page that CORS lets read it is not held up.
 */
export const ANSWER_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
} as const;

/** Any of these means that somebody relayed the request, so the socket's address says nothing about the caller. */
const FORWARDING_HEADERS: ReadonlySet<string> = new Set(['forwarded', 'x-real-ip', 'via']);
const FORWARDING_PREFIXES: readonly string[] = ['x-forwarded-', 'cf-', 'tailscale-'];

export function provenanceOf({ peerAddress, peer, headers }: RequestOrigin, settings: GuardSettings): Provenance {
  const isLoopback = isLoopbackAddress(peerAddress) && peer.kind !== 'other' && !isForwarded(headers);
  const host = isLoopback ? hostOf(headers['host'], settings) : 'own';
  const site = siteOf(headers, settings);
  return {
    isLoopback,
    // Whoever answers to that name elsewhere can have sent the page.
    site: host === 'ambiguous' && site === 'own' ? unlisted(settings) : site,
    origin: originOf(headers),
    host,
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

/** As others of its kind are named, of which a machine doesn't know its own. */
const AMBIGUOUS_NAME = /(?:^host\.docker\.internal|\.local)$/;

/** What a `Host` header says; `undefined` where there is none. */
export function hostOf(
  header: string | readonly string[] | undefined,
  { hostnames, machineNames }: Pick<GuardSettings, 'hostnames' | 'machineNames'>,
): Host {
  if (header === undefined) return 'ambiguous';
  const name = hostnameOf(single(header));
  if (name === undefined) return 'foreign';
  if (isLoopbackName(name) || hostnames.includes(name)) return 'own';
  return AMBIGUOUS_NAME.test(name) || machineNames().includes(name) ? 'ambiguous' : 'foreign';
}

/**
 * `*.localhost` never leaves the machine (RFC 6761 §6.3). Other ways to write a loopback address are left out: browsers
 * treat `0.0.0.0`, `[::]` and IPv4-mapped addresses as other machines, and let any page send requests there.
 */
function isLoopbackName(name: string): boolean {
  if (name === '::1' || name === 'localhost' || name.endsWith('.localhost')) return true;
  return isIP(name) === 4 && name.startsWith('127.');
}

/** The name in a `Host` header, lower case and without port, brackets or final dot; undefined for what is no host at all. */
function hostnameOf(host: string): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::\d{1,5})?$/i.exec(host);
  return (match?.[1] ?? match?.[2])?.toLowerCase().replace(/\.$/, '');
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
