/**
 * Who may call what. Each route has an access class; this file says what each class asks of a caller, and nothing
 * else in the gateway does. `docs/access.md` is the same table for people.
 */
import type { AgentAddress, Caller } from './caller.ts';
import type { Host, Site } from './guard.ts';

/**
 * `channel` is how a device gets in, sealed or to be paired: for everybody but those who are in, and web pages that the
 * owner knows nothing of, which would learn there whose gateway it is.
 */
export type AccessClass = 'public' | 'channel' | 'health' | 'inference' | 'tools' | 'agents' | 'dispatch' | 'admin';

export interface PolicyRequest {
  readonly caller: Caller;
  readonly site: Site;
  readonly host: Host;
  /** True when the request carries the token of this very run, which only this machine's owner can read. */
  readonly hasRunToken: boolean;
  /** The agent that the route acts on, where it names one. */
  readonly agent?: { readonly isBuiltIn: boolean; readonly address: AgentAddress } | undefined;
}

export type Refusal =
  /** No credential, where one is needed. */
  | 'unauthenticated'
  /** Nothing that this caller could present would do. */
  | 'forbidden'
  /** A name that a web page could have been sent under by another machine. */
  | 'foreign_host'
  /** A web page that has no business here. */
  | 'cross_site'
  /** Right caller, wrong agent. */
  | 'agent_scope_denied'
  /** Allowed only inside the encrypted channel. */
  | 'secure_channel_required';

export type Verdict =
  | {
      readonly allowed: true;
      /** `summary`: a remote or cross-site caller sees less. */ readonly view: 'full' | 'summary';
    }
  | { readonly allowed: false; readonly refusal: Refusal };

const FULL: Verdict = { allowed: true, view: 'full' };
const SUMMARY: Verdict = { allowed: true, view: 'summary' };
const refuse = (refusal: Refusal): Verdict => ({ allowed: false, refusal });

/** What a name gives that may be another machine's as well. */
const BY_ANY_NAME: ReadonlySet<AccessClass> = new Set(['public', 'health', 'inference']);

export function decide(access: AccessClass, request: PolicyRequest): Verdict {
  const { caller, site, host } = request;
  const isKnown = caller.scope !== 'nobody';
  if (host === 'foreign' || (host === 'ambiguous' && !BY_ANY_NAME.has(access))) return refuse('foreign_host');
  switch (access) {
    case 'public':
      return FULL;
    case 'channel':
      if (caller.sealed) return refuse('forbidden');
      return site === 'any' || site === 'foreign' ? refuse('cross_site') : FULL;
    case 'health':
      return isKnown && !isUninvited(site) && host === 'own' ? FULL : SUMMARY;
    case 'inference':
      if (site === 'app' || site === 'foreign') return refuse('cross_site');
      return isKnown ? FULL : refuse('unauthenticated');
    case 'tools':
    case 'agents':
      if (isUninvited(site)) return refuse('cross_site');
      return isKnown ? FULL : refuse('unauthenticated');
    case 'dispatch':
      if (isUninvited(site)) return refuse('cross_site');
      return decideDispatch(request);
    case 'admin':
      return decideAdmin(request);
  }
}

/**
 * `*` invites every page to inference, which costs the owner time and nothing else; not to what acts for them. The app
 * that devices are paired with is a device's way in, and says the rest inside the channel.
 */
function isUninvited(site: Site): boolean {
  return site === 'app' || site === 'any' || site === 'foreign';
}

function decideDispatch({ caller, agent }: PolicyRequest): Verdict {
  const isLocal = caller.transport === 'loopback';
  if (caller.scope === 'nobody') return refuse('unauthenticated');
  if (!isLocal && !caller.sealed) return refuse('secure_channel_required');
  if (caller.scope === 'owner' || agent === undefined) return FULL;
  if (agent.isBuiltIn) return isLocal && caller.scope === 'master' ? FULL : refuse('forbidden');
  return caller.scope === 'master' || caller.scope === agent.address ? FULL : refuse('agent_scope_denied');
}

/**
 * Only a process of the owner's on this machine, or one that has the run's token, and never a credential: a stolen key
 * must not be able to change who holds keys.
 */
function decideAdmin({ caller, site, hasRunToken }: PolicyRequest): Verdict {
  if (caller.transport !== 'loopback' || caller.sealed || caller.credential !== 'none') return refuse('forbidden');
  if (caller.scope === 'nobody') return refuse('unauthenticated');
  if (site === 'none') return FULL;
  return site === 'own' && hasRunToken ? FULL : refuse('cross_site');
}
