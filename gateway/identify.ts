/**
 * Who sends a request: once for each, from where it comes and what it shows. What does not count is the same as nothing
 * to policy; why it does not is for the log alone.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { AccessKeyRefusal, AccessKeyVerdict } from '../identity/node/access-key-check.ts';
import type { AccessKeyRegistry } from '../identity/node/access-key-registry.ts';
import { isShapedAsAccessKey } from '../identity/access-key.ts';
import type { AccessKeySource } from './access-key-source.ts';
import { callerOf, type Caller, type Proof, type WebPage } from './caller.ts';
import { readCredential } from './credential.ts';
import { RequestError } from './errors.ts';
import type { LiveRequest, LiveRequests } from './live-requests.ts';
import type { Located } from './locate.ts';
import type { Closing } from './pipeline/exchange.ts';
import { createRateWindow, type RateWindow } from './rate-window.ts';
import { isRunToken, RUN_TOKEN_HEADER } from './run-token.ts';

/**
 * Keys that do not count which one source may show in a minute before it is told to wait. Whoever shows one that counts
 * is never told so, whatever others show from the same address.
 */
export const MAX_FAILURES_PER_MINUTE = 20;

export interface AccessSettings {
  /** Whether callers on this machine need a key, or the token of the run, as well. */
  readonly requireKeyOnLoopback: boolean;
  /** For each key. */
  readonly requestsPerMinute: number;
  readonly requestsAtOnce: number;
}

/** Why a request is not known by what it showed. A fixed list of words, which the audit log counts. */
export type CredentialFault = AccessKeyRefusal | 'too_many_failures';

export interface Identified {
  readonly caller: Caller;
  readonly hasRunToken: boolean;
  readonly fault?: CredentialFault;
  /** To be answered in place of the handler. That keys can't be checked concerns those alone who need one. */
  readonly failure?: RequestError;
  /** Of a caller with a key. */
  readonly live?: LiveRequest;
}

export interface Arrival {
  readonly headers: IncomingHttpHeaders;
  /** Every value of every header. */
  readonly headersDistinct: Readonly<Record<string, readonly string[] | undefined>>;
  readonly provenance: Pick<Located, 'isLoopback' | 'site' | 'origin' | 'source'>;
  readonly exchange: Closing;
}

interface IdentifyOptions {
  readonly keys: Pick<AccessKeySource, 'open'>;
  readonly live: LiveRequests;
  readonly settings: AccessSettings;
  readonly runToken: string;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
}

export interface Identifier {
  /** Of a request that arrived on a socket. */
  readonly identify: (arrival: Arrival) => Promise<Identified>;
  /** Of one from inside a sealed call, whose caller is known; the limits are those of every key. */
  readonly admitDevice: (caller: Caller, exchange: Closing) => Identified;
}

export function createIdentifier(options: IdentifyOptions): Identifier {
  const { settings, runToken, elapsed } = options;
  const failures = createRateWindow({ limit: MAX_FAILURES_PER_MINUTE, now: elapsed });
  const uses = createRateWindow({ limit: settings.requestsPerMinute, now: elapsed });
  const identify = async (arrival: Arrival): Promise<Identified> => {
    const { headers, headersDistinct, provenance } = arrival;
    const { isLoopback } = provenance;
    const hasRunToken = isRunToken(headers[RUN_TOKEN_HEADER], runToken);
    const as = (proof: Proof): Pick<Identified, 'caller' | 'hasRunToken'> => ({
      caller: callerOf({ transport: isLoopback ? 'loopback' : 'lan', sealed: false, page: pageOf(provenance) }, proof),
      hasRunToken,
    });
    // Clients on this machine send any value for a key; it is nobody's business whether it is one.
    if (isLoopback && (hasRunToken || !settings.requireKeyOnLoopback)) return as('owner');
    const credential = readCredential(headersDistinct);
    if (credential.kind === 'none') return as('nothing');
    // What is no key at all needs no identity to be refused, and must not make the service open one.
    const token = credential.kind === 'token' && isShapedAsAccessKey(credential.token) ? credential.token : undefined;
    const registry = token === undefined ? undefined : await openRegistry(options.keys);
    if (registry instanceof RequestError) return { ...as('nothing'), failure: registry };
    const verdict = token === undefined || registry === undefined ? MALFORMED : registry.verify(token);
    // Whoever has left learns nothing, and is no failure.
    if (!verdict.counts && arrival.exchange.isClosed) return as('nothing');
    if (!verdict.counts) return { ...as('nothing'), ...countFailure(failures, arrival, verdict.refusal) };
    // No await since the verdict: either a revocation finds this request, or the verdict has found the revocation.
    const { kid, scope } = verdict.key;
    return { ...as({ scope, keyId: kid }), ...admit(kid, { ...options, uses, exchange: arrival.exchange }) };
  };
  return {
    identify,
    admitDevice(caller, exchange) {
      const { keyId } = caller;
      if (keyId === undefined) throw new TypeError('a device comes with its grant');
      return { caller, hasRunToken: false, ...admit(keyId, { ...options, uses, exchange }) };
    },
  };
}

/** Our own pages act for whoever opened them. */
function pageOf({ site, origin }: Arrival['provenance']): WebPage | undefined {
  return site === 'none' || site === 'own' ? undefined : { origin, isGuest: site === 'any' };
}

function countFailure(
  failures: RateWindow,
  { provenance: { source } }: Pick<Arrival, 'provenance'>,
  refusal: AccessKeyRefusal,
): Pick<Identified, 'fault' | 'failure'> {
  const waitS = failures.retryAfterS(source);
  if (waitS !== undefined) return { fault: 'too_many_failures', failure: tooManyFailures(waitS) };
  failures.count(source);
  return { fault: refusal };
}

const MALFORMED: AccessKeyVerdict = { counts: false, refusal: 'malformed', kid: undefined };

function openRegistry(keys: Pick<AccessKeySource, 'open'>): Promise<AccessKeyRegistry | RequestError> {
  return keys.open().catch((error: unknown) => {
    if (error instanceof RequestError) return error;
    throw error;
  });
}

interface KeyLimits extends Pick<IdentifyOptions, 'live' | 'settings'> {
  readonly uses: RateWindow;
  readonly exchange: Closing;
}

function admit(
  keyId: string,
  { uses, live, settings, exchange }: KeyLimits,
): Pick<Identified, 'failure'> | Pick<Identified, 'live'> {
  const waitS = uses.retryAfterS(keyId);
  if (waitS !== undefined) return { failure: tooManyRequests(waitS) };
  uses.count(keyId);
  if (live.count(keyId) >= settings.requestsAtOnce) return { failure: tooManyAtOnce(settings.requestsAtOnce) };
  return { live: live.enter(keyId, exchange) };
}

function limited(message: string, retryAfterS: number): RequestError {
  return new RequestError('rate_limited', message, { headers: { 'retry-after': String(retryAfterS) } });
}

const tooManyFailures = (waitS: number) =>
  limited(`Too many invalid keys from this address. Try again in ${waitS} s.`, waitS);
const tooManyRequests = (waitS: number) => limited(`Too many requests with this key. Try again in ${waitS} s.`, waitS);
const tooManyAtOnce = (limit: number) =>
  limited(`This key has ${limit} requests under way. Try again when one of them is done.`, 1);
