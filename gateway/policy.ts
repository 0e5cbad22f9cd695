/**
 * Who may call what. Each route has an access class; this file says what each class asks of a caller, and nothing
 * else in the gateway does. `docs/access.md` is the same table for people.
 */
import type { NamedAgent } from './agent-directory.ts';
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
  readonly agent: NamedAgent;
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
  /** The credential is for one agent, and this is not it. Whether there is such an agent it does not learn. */
  | 'agent_scope_denied'
  | 'agent_not_found'
  /** Allowed only inside the encrypted channel. */
  | 'secure_channel_required';

export type AgentReach = 'all' | 'none' | AgentAddress;

export type Verdict =
  | {
      readonly allowed: true;
      /** `summary`: a remote or cross-site caller sees less. */ readonly view: 'full' | 'summary';
      /** Whose tools, tasks and memory the request may touch. A handler looks at no other agent's. */
      readonly agents: AgentReach;
    }
  | { readonly allowed: false; readonly refusal: Refusal };

const FULL: Verdict = { allowed: true, view: 'full', agents: 'none' };
const SUMMARY: Verdict = { allowed: true, view: 'summary', agents: 'none' };
const refuse = (refusal: Refusal): Verdict => ({ allowed: false, refusal });

/** What a name gives that may be another machine's as well. */
const BY_ANY_NAME: ReadonlySet<AccessClass> = new Set(['public', 'health', 'inference']);

export function decide(access: AccessClass, request: PolicyRequest): Verdict {
  const { caller, site, host } = request;
  const isKnown = caller.scope !== 'anonymous';
  if (host === 'foreign' || (host === 'ambiguous' && !BY_ANY_NAME.has(access))) return refuse('foreign_host');
  switch (access) {
    case 'public':
      return FULL;
    case 'channel':
      if (caller.sealed) return refuse('forbidden');
      return site === 'any' || site === 'foreign' ? refuse('cross_site') : FULL;
    case 'health':
      return isKnown && !isUntrustedOrigin(site) && host === 'own' ? FULL : SUMMARY;
    case 'inference':
      if (site === 'app' || site === 'foreign') return refuse('cross_site');
      return isKnown ? FULL : refuse('unauthenticated');
    case 'tools':
    case 'agents':
      if (isUntrustedOrigin(site)) return refuse('cross_site');
      return decideReach(request);
    case 'dispatch':
      if (isUntrustedOrigin(site)) return refuse('cross_site');
      return decideDispatch(request);
    case 'admin':
      return decideAdmin(request);
  }
}

/**
 * `*` invites every page to inference, which costs the owner time and nothing else; not to what acts for them. The app
 * that devices are paired with is a device's way in, and says the rest inside the channel.
 */
function isUntrustedOrigin(site: Site): boolean {
  return site === 'app' || site === 'any' || site === 'foreign';
}

/** An agent's credential reaches that agent and no other; everybody else who is known reaches all that exist. */
function decideReach({ caller: { scope }, agent }: PolicyRequest): Verdict {
  if (scope === 'anonymous') return refuse('unauthenticated');
  const isForAll = scope === 'owner' || scope === 'master';
  const isOwn = agent === 'none' || (typeof agent === 'object' && agent.kind === 'custom' && agent.address === scope);
  if (!isForAll && !isOwn) return refuse('agent_scope_denied');
  return agent === 'unknown'
    ? refuse('agent_not_found')
    : { allowed: true, view: 'full', agents: isForAll ? 'all' : scope };
}

/** Work is begun for an agent: without one there is none to begin. */
function decideDispatch(request: PolicyRequest): Verdict {
  const { caller, agent } = request;
  const isLocal = caller.transport === 'loopback' && !caller.sealed;
  if (caller.scope === 'anonymous') return refuse('unauthenticated');
  if (!isLocal && !caller.sealed) return refuse('secure_channel_required');
  if (agent === 'none') return refuse('agent_not_found');
  const isBuiltIn = typeof agent === 'object' && agent.kind === 'built-in';
  return isBuiltIn && !isLocal ? refuse('forbidden') : decideReach(request);
}

/**
 * Only a process of the owner's on this machine, or one that has the run's token, and never a credential: a stolen key
 * must not be able to change who holds keys.
 */
function decideAdmin({ caller, site, hasRunToken }: PolicyRequest): Verdict {
  if (caller.transport !== 'loopback' || caller.sealed || caller.credential !== 'none') return refuse('forbidden');
  if (caller.scope === 'anonymous') return refuse('unauthenticated');
  if (site === 'none') return FULL;
  return site === 'own' && hasRunToken ? FULL : refuse('cross_site');
}
