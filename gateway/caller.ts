/**
 * Who is calling. Made once for each request, passed along with it, never inferred a second time.
 */
import type { CallOwner } from '../core/inference/call-owner.ts';

/** An agent's address: `0x` and 40 hexadecimal digits. */
export type AgentAddress = `0x${string}`;

export interface Caller {
  /** How the request got here. `loopback` is this machine and nothing that only looks like it. */
  readonly transport: 'loopback' | 'lan' | 'relay';
  /** True inside a call of the secure channel. */
  readonly sealed: boolean;
  /** What it proved itself with. */
  readonly credential: 'none' | 'key' | 'device';
  /** What it may act for: `owner` is whoever sits at this machine, `anonymous` a caller that is not known. */
  readonly scope: 'owner' | 'master' | 'anonymous' | AgentAddress;
  /** The name of the access key, of a caller that has one. */
  readonly keyId?: string;
  /** The web page behind it, where it has no key and the page is none of ours. */
  readonly page?: WebPage;
}

export interface WebPage {
  /** Undefined where its browser does not tell: a sandboxed frame, a file, an image that is fetched. */
  readonly origin: string | undefined;
  /** Let in because every page is, and not because the owner named it. */
  readonly isGuest: boolean;
}

/** What makes a caller known: being the owner at this machine, an access key that counts, or nothing. */
export type Proof = 'owner' | 'nothing' | { readonly scope: 'master' | AgentAddress; readonly keyId: string };

interface Where extends Pick<Caller, 'transport' | 'sealed'> {
  readonly page?: WebPage | undefined;
}

export function callerOf({ page, ...where }: Where, proof: Proof): Caller {
  if (proof === 'owner')
    return { ...where, credential: 'none', scope: 'owner', ...(page === undefined ? {} : { page }) };
  return proof === 'nothing'
    ? { ...where, credential: 'none', scope: 'anonymous' }
    : { ...where, credential: 'key', ...proof };
}

/**
 * The partition that a caller belongs to. Whatever is kept for one caller, or that one caller's requests can do to
 * another's, is parted by it: the owner, each access key (with the device whose grant it is), and each web page's origin
 * find nothing of each other's. Two keys that are good for the same are two owners.
 */
export function ownerOf({ keyId, scope, page }: Caller): string {
  if (keyId !== undefined) return `key ${keyId}`;
  return page === undefined ? scope : `page ${page.origin ?? ''}`;
}

/** Who sits at this machine, and not a web page there. */
export function isOwner(caller: Caller): boolean {
  return ownerOf(caller) === 'owner';
}

/** The partition, for calls of models. */
export function callOwnerOf(caller: Caller): CallOwner {
  return { name: ownerOf(caller), isGuest: isGuest(caller) };
}

/** A web page that was let in because every page is. */
export function isGuest({ page }: Caller): boolean {
  return page?.isGuest === true;
}

/** As the log knows a caller. */
export function callerName({ transport, credential, scope, keyId }: Caller): string {
  if (keyId !== undefined) return `key ${keyId}`;
  if (credential !== 'none') return `${credential} ${scope}`;
  return transport === 'loopback' && scope === 'owner' ? 'loopback' : 'anonymous';
}
