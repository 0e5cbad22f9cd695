/** What is found out about a request before its route sees it: where it comes from, who sends it, what policy says. */
import { takeTurn } from '../../core/turns.ts';
import type { LiveRequest, LiveRequests } from '../live-requests.ts';
import { namedAgent, type AgentDirectory, type NamedAgent } from '../agent-directory.ts';
import { isGuest } from '../caller.ts';
import { refusalError, RequestError } from '../errors.ts';
import { admitGuest } from '../guest-places.ts';
import type { Identified, Identifier } from '../identify.ts';
import type { Locate, Located } from '../locate.ts';
import { decide, type AccessClass, type Verdict } from '../policy.ts';
import { sourceOf } from '../source.ts';
import type { Exchange, OverSocket } from './exchange.ts';
import type { Target } from './router.ts';

export interface AuthResult extends Identified {
  readonly provenance: Located;
  readonly verdict: Verdict;
}

interface AuthorizerOptions {
  readonly live: LiveRequests;
  readonly locate: Locate;
  readonly identifier: Identifier;
  readonly agents: AgentDirectory;
}

/** @throws {RequestError} for a request of which nobody can tell what it is, or that is gone */
export type Authorize = (exchange: Exchange, target: Target | undefined) => Promise<AuthResult>;

export function createAuthorizer(options: AuthorizerOptions): Authorize {
  return async (exchange, target) =>
    exchange.via.kind === 'socket'
      ? authorizeOutside(exchange, exchange.via, target, options)
      : authorizeInside(exchange, exchange.via.caller, target, options);
}

async function authorizeOutside(
  exchange: Exchange,
  { request }: OverSocket,
  target: Target | undefined,
  { live, locate, identifier, agents }: AuthorizerOptions,
): Promise<AuthResult> {
  const { headers, headersDistinct } = request;
  // Two names may mean two machines, depending on who reads them (RFC 9112, 3.2).
  if ((headersDistinct['host']?.length ?? 0) > 1) {
    throw new RequestError('bad_request', 'The request has more than one Host header.');
  }
  const provenance = await locate(request);
  await requireClient(exchange, provenance);
  const found = await identifier.identify({ headers, headersDistinct, provenance, exchange });
  const { caller, hasRunToken } = found;
  const { site, host } = provenance;
  const access = target?.route.access ?? 'public';
  const agent = agentOf(target, agents);
  const verdict = decide(access, { caller, site, host, hasRunToken, agent });
  const takesPlace = target?.wants !== 'preflight' && verdict.allowed && access === 'inference' && isGuest(caller);
  const place: { live?: LiveRequest; failure?: RequestError } = takesPlace
    ? admitGuest({ caller, exchange, live })
    : {};
  return { ...found, ...place, provenance, verdict };
}

/** Nowhere on this machine, and no browser's. */
const INSIDE: Located = {
  isLoopback: false,
  site: 'none',
  origin: undefined,
  host: 'own',
  source: sourceOf(undefined),
  isOrphan: false,
};

/** A request from inside a sealed call is its device's; one that has lost its caller is nobody's. */
function authorizeInside(
  exchange: Exchange,
  caller: Identified['caller'] | undefined,
  target: Target | undefined,
  { identifier, agents }: AuthorizerOptions,
): AuthResult {
  if (caller === undefined) throw new RequestError('forbidden', 'A request from inside needs its caller.');
  const found = identifier.admitDevice(caller, exchange);
  const { site, host } = INSIDE;
  const agent = agentOf(target, agents);
  const verdict = decide(target?.route.access ?? 'public', { caller, site, host, hasRunToken: false, agent });
  return { ...found, provenance: INSIDE, verdict };
}

function agentOf(target: Target | undefined, agents: AgentDirectory): NamedAgent {
  return target === undefined ? 'none' : namedAgent(target.route, target.params, agents);
}

/**
 * Whoever has left is answered by nobody: that is no refusal, and counts against nobody.
 * @throws {RequestError} where the client has left; the exchange is over then
 */
export async function requireClient(exchange: Exchange, { isOrphan }: Pick<Located, 'isOrphan'>): Promise<void> {
  if (isOrphan && exchange.via.kind === 'socket') {
    // Its last word came before nobody had it any more, and is read in the next turn of the event loop at the latest.
    await takeTurn();
    await takeTurn();
    if (exchange.via.request.socket.readableEnded) exchange.cut();
  }
  // What is told only once, that a connection has ended, would be waited for in vain from here on.
  if (exchange.isClosed) throw new RequestError('bad_request', 'The request was cut off.');
}

export function isLetIn(found: AuthResult): boolean {
  return found.verdict.allowed && failureOf(found) === undefined;
}

/** @throws {RequestError} for a request that is not let in */
export function refuse(
  found: AuthResult,
  { access, onRefusal }: { readonly access: AccessClass; readonly onRefusal: (reason: string) => void },
): void {
  const { verdict, fault } = found;
  const failure = failureOf(found);
  if (failure !== undefined) {
    onRefusal(fault ?? failure.code);
    throw failure;
  }
  if (verdict.allowed) return;
  onRefusal(verdict.refusal === 'unauthenticated' ? (fault ?? 'no_credential') : verdict.refusal);
  throw refusalError(verdict.refusal, access);
}

function failureOf({ verdict, failure }: AuthResult): RequestError | undefined {
  const needsKey = !verdict.allowed && verdict.refusal === 'unauthenticated';
  return failure?.code === 'identity_unavailable' && !needsKey ? undefined : failure;
}
