/**
 * The order in which a request is looked at, wherever it comes from:
 *
 *     body cap → where from → who → policy → handler → answer
 *
 * The cap comes first, declared or counted; of a request that policy refuses not a byte of the body is kept.
 */
import { describeError } from '../../core/describe-error.ts';
import { setProcessTimer } from '../../core/timer.ts';
import { takeTurn } from '../../core/turns.ts';
import { answerEarly, bodyPieces, checkFraming, declaredLength, isHeard, shortBody } from '../body.ts';
import { createBodyBudget, type BodyBudget, type BodyLease } from '../body-budget.ts';
import { NO_BODY_BYTES } from '../bounds.ts';
import { ownerOf } from '../caller.ts';
import { contentCoding, unpacked } from '../content-coding.ts';
import { checkContentType } from '../content-type.ts';
import { corsHeaders, preflightHeaders } from '../cors.ts';
import { outwardError, refusalError, RequestError } from '../errors.ts';
import type { LiveRequest, LiveRequests } from '../live-requests.ts';
import { createRateWindow, type RateWindow } from '../rate-window.ts';
import { requestIds } from '../request-ids.ts';
import type { Recorder, RequestRecord } from '../request-log/recorder.ts';
import { CLIENT_LEFT } from '../request-log/request-entry.ts';
import { RequestBody, readBody, SHORT_BYTES } from '../request-body.ts';
import type { GatewayRequest, Reply, Route, Services } from '../route.ts';
import { dialectOf } from '../wire/dialects.ts';
import { IGNORED_HEADER } from '../wire/ignored.ts';
import { detach } from './detached.ts';
import type { Answer, Exchange, Pipeline } from './exchange.ts';
import { isLetIn, refuse, requireClient, type Authorize, type AuthResult } from './authorize.ts';
import { notFound } from './not-found.ts';
import type { Router, Target } from './router.ts';

export interface PipelineOptions {
  readonly router: Router;
  readonly authorize: Authorize;
  readonly services: Services;
  readonly recorder: Recorder;
  readonly live: LiveRequests;
  /** Told why each caller is turned away: one of a fixed list of words, which the caller itself does not get to see. */
  readonly onRefusal: (reason: string) => void;
  /** Told of each request that failed because of something here, and not because of who sent it. */
  readonly onError: (error: unknown) => void;
  /** A line for the owner. Nothing in it is a secret or a prompt. */
  readonly warn: (message: string, details: object) => void;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
}

export function createPipeline(options: PipelineOptions): Pipeline {
  const bodies = createBodyBudget();
  const anonymous = createRateWindow({ limit: ANONYMOUS_REQUESTS_PER_MINUTE, now: options.elapsed });
  const noteIgnored = createIgnoredNotes(options.warn);
  return (exchange) => new Visit(exchange, { ...options, bodies, anonymous, noteIgnored }).answer();
}

/** Requests a minute that one anonymous remote address may make, of all the routes that are open to it. */
const ANONYMOUS_REQUESTS_PER_MINUTE = 60;

interface VisitOptions extends PipelineOptions {
  readonly bodies: BodyBudget;
  readonly anonymous: RateWindow;
  readonly noteIgnored: (route: string, names: string | undefined) => void;
  /** Of a message over a WebSocket, which is for one route whatever its address. */
  readonly only?: Target;
}

/** One request on its way. */
class Visit {
  readonly #exchange: Exchange;
  readonly #options: VisitOptions;
  readonly #record: RequestRecord;
  /** What every answer to it says. */
  #headers: Readonly<Record<string, string>>;
  #target: Target | undefined;

  constructor(exchange: Exchange, options: VisitOptions) {
    this.#exchange = exchange;
    this.#options = options;
    this.#record = options.recorder.begin(exchange);
    this.#headers = requestIds(exchange.id);
  }

  async answer(): Promise<Answer> {
    try {
      return await this.#run();
    } catch (error) {
      return this.#failed(error);
    }
  }

  async #run(): Promise<Answer> {
    const { router, authorize, onRefusal } = this.#options;
    const exchange = this.#exchange;
    const target = this.#options.only ?? router.find(exchange.method, exchange.url);
    this.#target = target;
    this.#record.aim(target?.route);
    const maxBytes = target?.route.maxBodyBytes ?? NO_BODY_BYTES;
    checkFraming(exchange.headers, maxBytes);
    const found = await authorize(exchange, target);
    this.#record.identify(found.caller, found);
    if (exchange.via.kind === 'channel' && exchange.via.fault !== undefined) throw exchange.via.fault.error;
    const { site, host } = found.provenance;
    const { origin } = exchange.headers;
    const access = target?.route.access ?? 'public';
    this.#headers = { ...this.#headers, ...corsHeaders({ site, origin, access }) };
    const body = await this.#read(found, maxBytes);
    await requireClient(exchange, found.provenance);
    if (host === 'foreign') throw refusalError('foreign_host');
    // A browser asks so before it shows anything; inside a call nobody is a browser.
    if (target?.wants !== 'preflight' || found.caller.sealed) refuse(found, { access, onRefusal });
    if (target === undefined) throw notFound(exchange.url);
    this.#limitAnonymous(found, target);
    if (target.wants === 'preflight') return this.#preflight(found, target);
    if (target.wants === 'other') throw otherMethod(target);
    const handle = (): Promise<Answer> => this.#handle(target, found, body);
    return found.live === undefined ? handle() : found.live.run(handle);
  }

  /** @returns the body, or its pieces for a route that takes them as they come */
  async #read(found: AuthResult, maxBytes: number): Promise<RequestBody | AsyncIterable<Uint8Array>> {
    const { via, headers } = this.#exchange;
    const route = this.#target?.wants === 'answer' ? this.#target.route : undefined;
    const keep = isLetIn(found) && route?.handle !== undefined;
    if (hasNoBody(this.#exchange)) return new RequestBody({ keep });
    // What is not kept is not unpacked, either.
    const coding = keep ? contentCoding(headers['content-encoding']) : undefined;
    const isStream = keep && via.kind === 'socket' && route.readsStream === true;
    // What is inside a sealed call was counted there, as it came; who reads a stream counts it.
    const isCounted = coding !== undefined || (via.kind === 'socket' && !isStream);
    const lease = isCounted ? this.#lease(found) : UNCOUNTED;
    const unpack = { coding, maxBytes, lease };
    const reading = { keep, takeTurn, lease };
    const body = bodyOf(via);
    if (via.kind === 'channel' || body !== undefined) return readBody(unpacked(body ?? [], unpack), reading);
    const { request } = via;
    const limits = { maxBytes, setTimer: setProcessTimer };
    if (!isStream && coding === undefined && declaredLength(headers) <= SHORT_BYTES) {
      return readBody([await shortBody(request, limits)], reading);
    }
    const pieces = unpacked(bodyPieces(request, limits), unpack);
    return isStream ? pieces : readBody(pieces, reading);
  }

  /** Until the exchange is over. */
  #lease({ caller, provenance: { source } }: AuthResult): BodyLease {
    const lease = this.#options.bodies.open(caller.scope === 'anonymous' ? source : ownerOf(caller));
    this.#exchange.onClosed(() => lease.release());
    return lease;
  }

  /** The channel's doors have limits of their own: a device that is in makes many calls, and shows nothing outside. */
  #limitAnonymous({ caller, provenance: { source } }: AuthResult, { route }: Target): void {
    if (caller.scope !== 'anonymous' || route.access === 'channel') return;
    const { anonymous } = this.#options;
    const waitS = anonymous.retryAfterS(source);
    if (waitS !== undefined) {
      const message = 'Too many requests from this address. Try again in a minute.';
      throw new RequestError('rate_limited', message, { headers: { 'retry-after': String(waitS) } });
    }
    anonymous.count(source);
  }

  #preflight({ provenance: { site } }: AuthResult, { route: first, siblings }: Target): Answer {
    const { headers } = this.#exchange;
    const wanted = headers['access-control-request-method'];
    const { method, access } = siblings.find((route) => route.method === wanted) ?? first;
    const requestedHeaders = headers['access-control-request-headers'];
    const cors = preflightHeaders({ site, origin: headers.origin, access, method, requestedHeaders });
    return { status: 204, headers: { ...this.#headers, allow: methodsOf(siblings), ...cors }, body: '' };
  }

  async #handle(
    { route, params }: Target,
    { caller, verdict, live, provenance }: AuthResult,
    body: RequestBody | AsyncIterable<Uint8Array>,
  ): Promise<Answer> {
    if (!verdict.allowed) throw new TypeError('a refused request reached its handler');
    const exchange = this.#exchange;
    const [whole, stream] = body instanceof RequestBody ? [body, noBody()] : [NO_BODY, body];
    checkContentType(route.access, exchange.headers['content-type'], whole.bytes);
    if (route.handle === undefined) {
      throw new RequestError('not_implemented', 'This version of Postern does not have this endpoint yet.');
    }
    this.#record.keepBody(whole);
    // A device takes its answer up again elsewhere, so one that half-closes has left; it may not be written to for minutes.
    if (route.access === 'channel') exchange.onHalfClosed(() => exchange.cut());
    const request: GatewayRequest = {
      caller,
      view: verdict.view,
      agents: verdict.agents,
      params,
      query: queryOf(exchange.url),
      headers: exchange.headers,
      json: () => whole.json(),
      bodyBytes: whole.bytes,
      stream,
      clientKey: provenance.source,
      signal: goneSignal(exchange, live),
      detach: () => detach({ ...this.#options, exchange, route, caller }),
    };
    return this.#replied(route, await route.handle(request, this.#record.watchServices(this.#options.services)));
  }

  #replied({ path }: Route, reply: Reply): Answer {
    if (reply.isCarrier === true) this.#record.forget();
    this.#options.noteIgnored(path, reply.headers?.[IGNORED_HEADER]);
    const { status = 200, cut, messages, body } = reply;
    const headers = { ...this.#headers, ...reply.headers };
    if (typeof body === 'object' && Symbol.asyncIterator in body) {
      return { status, headers, cut, body: this.#record.watch(status, body) };
    }
    const [text, type] = typeof body === 'string' ? [body, TEXT] : [JSON.stringify(body), JSON_TYPE];
    this.#record.answer(status, text);
    return {
      ...wholeAnswer(status, { 'content-type': type, ...headers }, text),
      cut,
      messages: messages && this.#wayTo(messages),
    };
  }

  /** Every message is a visit of its own, which looks for no route. */
  #wayTo(route: Route): Pipeline {
    const only: Target = { route, params: {}, wants: 'answer', siblings: [route] };
    return (exchange) => new Visit(exchange, { ...this.#options, only }).answer();
  }

  #failed(error: unknown): Answer {
    const { via, method, isClosed } = this.#exchange;
    const { code, status, headers, ...outward } = outwardError(error);
    if (status >= 500) this.#options.onError(error);
    // Nobody is left to tell, and that what was under way was given up is no failure.
    if (isClosed) return { status: CLIENT_LEFT, headers: {}, body: '' };
    this.#record.fail(code);
    const route = this.#target?.route;
    if (status === 500)
      this.#options.warn('request failed', { code, ...describeError(error), method, route: route?.path });
    const text = JSON.stringify(dialectOf(this.#exchange).encodeError({ code, status, ...outward }));
    const answer = wholeAnswer(status, { ...this.#headers, ...headers, 'content-type': JSON_TYPE }, text);
    this.#record.answer(status, text);
    const isSent =
      bodyOf(via) !== undefined || via.kind === 'channel' || isHeard(via.request) || code === 'request_timeout';
    if (isSent) return answer;
    // RFC 9112, 9.3: what of the body may still come would be taken for the next request, or waited for in vain.
    const early = { ...answer.headers, connection: 'close' };
    return { ...answer, headers: early, body: answerEarly(text, via.request, setProcessTimer) };
  }
}

/** What is there already, and need not be waited for. */
function bodyOf(via: Exchange['via']): readonly Uint8Array[] | undefined {
  return via.kind === 'channel' ? via.body : via.message?.body;
}

function wholeAnswer(status: number, headers: Readonly<Record<string, string>>, body: string): Answer {
  return { status, headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) }, body };
}

const JSON_TYPE = 'application/json; charset=utf-8';
const TEXT = 'text/plain; charset=utf-8';

const NO_BODY = new RequestBody({ keep: false });
const UNCOUNTED: BodyLease = { take: () => Promise.resolve(), release: () => undefined };

/** RFC 9110, 9.3.1: one that comes with GET or HEAD means nothing. */
function hasNoBody({ via, method, headers }: Exchange): boolean {
  if (method === 'GET' || method === 'HEAD') return true;
  return via.kind === 'channel' ? via.body.length === 0 : declaredLength(headers) === 0;
}

async function* noBody(): AsyncGenerator<Uint8Array> {
  // There is none.
}

/** Fires when the client goes away, or its key is revoked. */
function goneSignal(exchange: Exchange, live: LiveRequest | undefined): AbortSignal {
  const gone = new AbortController();
  exchange.onClosed((isAnswered) => {
    if (!isAnswered) gone.abort(new DOMException('The client went away.', 'AbortError'));
  });
  live?.signal.addEventListener('abort', () => gone.abort(live.signal.reason), { once: true });
  return gone.signal;
}

function queryOf(url: string): URLSearchParams {
  return new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? '');
}

function methodsOf(siblings: readonly Route[]): string {
  const methods = siblings.map((route) => route.method);
  return [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
}

function otherMethod({ siblings }: Target): RequestError {
  const allow = methodsOf(siblings);
  return new RequestError('method_not_allowed', `Method not allowed: this endpoint takes ${allow}.`, {
    headers: { allow },
  });
}

/** How many different notes are kept in mind, so that a client can't fill the log or the memory with new ones. */
const MAX_NOTES = 100;

/** Says once, not for each request, what of a client's requests has no effect here. */
function createIgnoredNotes(warn: PipelineOptions['warn']): (route: string, names: string | undefined) => void {
  const noted = new Set<string>();
  return (route, names) => {
    if (names === undefined || noted.has(names) || noted.size >= MAX_NOTES) return;
    noted.add(names);
    warn('a client asks for what is not available here; its requests are answered without', { route, ignored: names });
  };
}
