/**
 * The only door: Fastify, and the order in which a request is looked at.
 *
 *     socket → body cap → where from → who → policy → handler → reply
 *
 * The cap comes first, declared or counted; of a request that policy refuses not a byte of the body is kept.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import rateLimit from '@fastify/rate-limit';
import Fastify, {
  LogController,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import { setProcessTimer } from '../core/timer.ts';
import { takeTurn } from '../core/turns.ts';
import { bodyPieces, checkDeclaredLength } from './body.ts';
import { createBodyBudget, type BodyBudget, type BodyLease } from './body-budget.ts';
import { NO_BODY_BYTES } from './bounds.ts';
import { isGuest, ownerOf } from './caller.ts';
import { checkContentType, forgetMalformedContentType } from './content-type.ts';
import { corsHeaders, preflightHeaders } from './cors.ts';
import { refusalError, RequestError } from './errors.ts';
import { admitGuest } from './guest-places.ts';
import type { GuardSettings } from './guard.ts';
import { createIdentifier, type AccessSettings, type Identified, type Identifier } from './identify.ts';
import type { LiveRequests } from './live-requests.ts';
import { createLocator, type Located } from './locate.ts';
import type { PeerProcesses } from './peer-process.ts';
import { decide, type Verdict } from './policy.ts';
import { sendReply } from './reply.ts';
import { RequestBody, readBody } from './request-body.ts';
import { createInnerRunner, enterInner, type RunInner } from './sealed/inner-request.ts';
import { createListener, type Listener } from './listener.ts';
import type { Recorder } from './request-log/recorder.ts';
import type { Method, Route, Services } from './route.ts';
import { withoutAlias } from './routes.ts';
import { outwardFailure, sendError } from './send-error.ts';
import { sourceOf } from './source.ts';
import { whenClosed, whenHalfClosed } from './when-closed.ts';
import { IGNORED_HEADER } from './wire/ignored.ts';

export interface GatewayOptions {
  readonly routes: readonly Route[];
  readonly services: Services;
  readonly guard: GuardSettings;
  readonly peers: PeerProcesses;
  readonly access: AccessSettings;
  readonly live: LiveRequests;
  /** Proves to this run that a request comes from its owner; never logged, never sent anywhere. */
  readonly runToken: string;
  readonly recorder: Recorder;
  /** Told why each caller is turned away: one of a fixed list of words, which the caller itself does not get to see. */
  readonly onRefusal: (reason: string) => void;
  /** Told of each request that failed because of something here, and not because of who sent it. */
  readonly onError: (error: unknown) => void;
  readonly logLevel: 'silent' | 'warn';
}

/** What was found out about a request before its route saw it. */
interface Judged extends Identified {
  readonly provenance: Located;
  readonly verdict: Verdict;
  /** What its body takes of the memory that there is for bodies. */
  readonly body?: BodyLease | undefined;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    route?: Route;
    /** A browser asks first, without any credential: policy has nothing to judge yet. */
    isPreflight?: true;
  }
}

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'DELETE'];

/** Requests a minute that one anonymous remote address may make, of all the routes that are open to it. */
const ANONYMOUS_REQUESTS_PER_MINUTE = 60;

export interface Gateway {
  readonly listener: Listener;
  /** Runs what came inside a sealed call. */
  readonly runInner: RunInner;
}

/** The gateway, ready to listen. */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const app = createApp(options);
  const judged = new WeakMap<IncomingMessage, Judged>();
  const bodies = createBodyBudget();
  const identifier = createIdentifier({
    keys: options.services.keys,
    live: options.live,
    settings: options.access,
    runToken: options.runToken,
    elapsed: () => performance.now(),
  });
  const locate = createLocator(options);

  await app.register(rateLimit, {
    hook: 'preHandler',
    max: ANONYMOUS_REQUESTS_PER_MINUTE,
    timeWindow: 60_000,
    keyGenerator: (request) => judgedOf(judged, request).provenance.source,
    // The channel's doors have limits of their own: a device that is in makes many calls, and shows nothing outside.
    allowList: (request) =>
      judged.get(request.raw)?.caller.scope !== 'nobody' || routeOf(request)?.access === 'channel',
    errorResponseBuilder: () =>
      new RequestError('rate_limited', 'Too many requests from this address. Try again in a minute.'),
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (request: FastifyRequest, payload: IncomingMessage) => {
    const route = routeOf(request);
    const pieces = bodyPieces(payload, { maxBytes: route?.maxBodyBytes ?? NO_BODY_BYTES, setTimer: setProcessTimer });
    const found = judged.get(request.raw);
    const keep = isLetIn(found) && route?.handle !== undefined;
    if (keep && route.readsStream === true) return pieces;
    return readBody(pieces, { keep, takeTurn, lease: found?.body ?? UNCOUNTED });
  });

  app.addHook('onRequest', async (request, reply) => {
    const record = options.recorder.of(request, reply);
    // The two names under which clients look for it.
    reply.headers({ 'x-request-id': request.id, 'request-id': request.id });
    forgetMalformedContentType(request.raw);
    const route = routeOf(request);
    checkDeclaredLength(request.raw, route?.maxBodyBytes ?? NO_BODY_BYTES);
    const found = await judgeRequest({ request, reply, route, live: options.live, locate, identifier });
    judged.set(request.raw, { ...found, body: leaseFor(found, { bodies, request, reply }) });
    record.identify({ caller: found.caller, source: found.caller.sealed ? 'sealed' : 'http' });
    reply.headers(corsHeaders({ ...webRequest(request, found), access: route?.access ?? 'public' }));
  });

  app.addHook('preHandler', async (request) => {
    const found = judgedOf(judged, request);
    if (found.provenance.host === 'foreign') throw refusalError('foreign_host');
    // A browser asks so before it shows anything; inside a call nobody is a browser.
    if (request.routeOptions.config.isPreflight === true && !found.caller.sealed) return;
    refuse(found, options.onRefusal);
  });

  addRoutes(app, options, judged);
  await app.ready();
  return {
    listener: createListener({
      handle: (request, response) => app.routing(request, response),
      setTimer: setProcessTimer,
    }),
    runInner: createInnerRunner(app),
  };
}

function addRoutes(app: FastifyInstance, options: GatewayOptions, judged: WeakMap<IncomingMessage, Judged>): void {
  const noteIgnored = createIgnoredNotes(app.log);
  for (const route of options.routes) {
    app.route({
      method: route.method,
      url: route.path,
      config: { route },
      handler: (request, reply) => {
        const found = judgedOf(judged, request);
        const handle = () => answer({ request, reply, route, options, found, noteIgnored });
        return found.live === undefined ? handle() : found.live.run(handle);
      },
    });
  }
  for (const path of new Set(options.routes.map((route) => route.path))) {
    addOtherMethods(
      app,
      path,
      options.routes.filter((route) => route.path === path),
      judged,
    );
  }
}

function createApp({ logLevel, recorder, onError }: GatewayOptions): FastifyInstance {
  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const { code, status } = outwardFailure(error);
    recorder.of(request, reply).fail(code);
    if (status >= 500) onError(error);
    sendError(error, request, reply);
  };
  const app = Fastify({
    logger: { level: logLevel, stream: process.stderr },
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    rewriteUrl: (request) => withoutAlias(request.url ?? '/'),
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: (_error, request, reply) =>
      fail(new RequestError('bad_request', 'The address is malformed.'), request, reply),
  });
  app.setErrorHandler(fail);
  app.addHook('onSend', (request, reply, payload, done) => {
    recorder.of(request, reply).answer(payload);
    done(null, payload);
  });
  app.setNotFoundHandler(() => {
    throw new RequestError('not_found', 'There is nothing at this address.');
  });
  return app;
}

function routeOf(request: FastifyRequest): Route | undefined {
  return request.routeOptions.config.route;
}

function judgedOf(judged: WeakMap<IncomingMessage, Judged>, request: FastifyRequest): Judged {
  const found = judged.get(request.raw);
  if (found === undefined) throw new TypeError('a request got this far without having been judged');
  return found;
}

interface Judging {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly route: Route | undefined;
  readonly live: LiveRequests;
  readonly locate: (request: IncomingMessage) => Promise<Located>;
  readonly identifier: Identifier;
}

async function judgeRequest({ request, reply, route, live, locate, identifier }: Judging): Promise<Judged> {
  const { headers, headersDistinct, socket } = request.raw;
  // Only a real socket has an address worth believing: a request made in process looks as if it came from 127.0.0.1.
  if (!(socket instanceof Socket)) return judgeInner(reply, route, identifier);
  // Two names may mean two machines, depending on who reads them (RFC 9112, 3.2).
  if ((headersDistinct['host']?.length ?? 0) > 1) {
    throw new RequestError('bad_request', 'The request has more than one Host header.');
  }
  const provenance = await locate(request.raw);
  // What is told only once, that a connection has ended, would be waited for in vain from here on.
  if (socket.destroyed) throw new RequestError('bad_request', 'The request was cut off.');
  const found = await identifier.identify({ headers, headersDistinct, provenance, response: reply.raw });
  const { caller, hasRunToken } = found;
  const { site, host } = provenance;
  const verdict = decide(route?.access ?? 'public', { caller, site, host, hasRunToken });
  const isAsked = request.routeOptions.config.isPreflight !== true && verdict.allowed;
  const takesPlace = isAsked && route?.access === 'inference' && isGuest(caller);
  const place = takesPlace ? admitGuest({ caller, response: reply.raw, live }) : {};
  return { ...found, ...place, provenance, verdict };
}

/** A request from inside a sealed call is its device's; one that has lost its caller is nobody's. */
function judgeInner(reply: FastifyReply, route: Route | undefined, identifier: Identifier): Judged {
  const caller = enterInner(reply.raw);
  if (caller === undefined) throw new RequestError('forbidden', 'A request from inside needs its caller.');
  const found = identifier.admitDevice(caller, reply.raw);
  const provenance: Located = {
    isLoopback: false,
    site: 'none',
    origin: undefined,
    host: 'own',
    source: sourceOf(undefined),
  };
  const verdict = decide(route?.access ?? 'public', { caller, site: 'none', host: 'own', hasRunToken: false });
  return { ...found, provenance, verdict };
}

function isLetIn(found: Judged | undefined): boolean {
  return found?.verdict.allowed === true && failureOf(found) === undefined;
}

interface Leasing {
  readonly bodies: BodyBudget;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Until the response is closed. A body from inside a sealed call was counted there. */
function leaseFor({ caller }: Judged, { bodies, request, reply }: Leasing): BodyLease | undefined {
  if (caller.sealed) return undefined;
  const lease = bodies.open(caller.scope === 'nobody' ? sourceOf(request.raw.socket.remoteAddress) : ownerOf(caller));
  whenClosed(reply.raw, () => lease.release());
  return lease;
}

const UNCOUNTED: BodyLease = { take: () => Promise.resolve(), tryTake: () => true, release: () => undefined };

function failureOf({ verdict, failure }: Judged): RequestError | undefined {
  const needsKey = !verdict.allowed && verdict.refusal === 'unauthenticated';
  return failure?.code === 'identity_unavailable' && !needsKey ? undefined : failure;
}

/** @throws {RequestError} for a request that is not let in */
function refuse(found: Judged, onRefusal: GatewayOptions['onRefusal']): void {
  const { verdict, fault } = found;
  const failure = failureOf(found);
  if (failure !== undefined) {
    onRefusal(fault ?? failure.code);
    throw failure;
  }
  if (verdict.allowed) return;
  onRefusal(verdict.refusal === 'unauthenticated' ? (fault ?? 'no_credential') : verdict.refusal);
  throw refusalError(verdict.refusal);
}

function webRequest({ headers }: FastifyRequest, { provenance }: Judged) {
  return { site: provenance.site, origin: headers.origin };
}

interface Answer {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly route: Route;
  readonly options: GatewayOptions;
  readonly found: Judged;
  readonly noteIgnored: (route: string, names: string | undefined) => void;
}

async function answer({ request, reply, route, options, found, noteIgnored }: Answer): Promise<FastifyReply> {
  if (!found.verdict.allowed) throw new TypeError('a refused request reached its handler');
  const body = request.body instanceof RequestBody ? request.body : NO_BODY;
  checkContentType(route.access, request.headers['content-type'], body.bytes);
  if (route.handle === undefined) {
    throw new RequestError('not_implemented', 'This version of Postern does not have this endpoint yet.');
  }
  const record = options.recorder.of(request, reply);
  const gone = new AbortController();
  whenClosed(reply.raw, () => {
    if (!reply.raw.writableEnded) gone.abort(new DOMException('The client went away.', 'AbortError'));
  });
  // A device takes its answer up again elsewhere, so one that half-closes has left; it may not be written to for minutes.
  if (route.access === 'channel') whenHalfClosed(reply.raw, () => void reply.raw.destroy());
  const revoked = found.live?.signal;
  revoked?.addEventListener('abort', () => gone.abort(revoked.reason), { once: true });
  const { pathname: _, searchParams: query } = new URL(request.url, 'http://localhost');
  const result = await route.handle(
    {
      caller: found.caller,
      view: found.verdict.view,
      params: stringParams(request.params),
      query,
      headers: request.headers,
      json: () => body.json(),
      bodyBytes: body.bytes,
      stream: isStream(request.body) ? request.body : noBody(),
      party: found.provenance.source,
      signal: gone.signal,
    },
    record.watchServices(options.services),
  );
  if (result.isCarrier === true) record.forget();
  noteIgnored(route.path, result.headers?.[IGNORED_HEADER]);
  await sendReply(reply, record.watchReply(result));
  return reply;
}

const NO_BODY = new RequestBody({ keep: false });

function isStream(body: unknown): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

async function* noBody(): AsyncGenerator<Uint8Array> {
  // There is none.
}

/** How many different notes are kept in mind, so that a client can't fill the log or the memory with new ones. */
const MAX_NOTES = 100;

/** Says once, not for each request, what of a client's requests has no effect here. */
function createIgnoredNotes(log: FastifyBaseLogger): (route: string, names: string | undefined) => void {
  const noted = new Set<string>();
  return (route, names) => {
    if (names === undefined || noted.has(names) || noted.size >= MAX_NOTES) return;
    noted.add(names);
    log.warn(
      { route, ignored: names },
      'a client asks for what is not available here; its requests are answered without',
    );
  };
}

function stringParams(params: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(params ?? {}).map(([name, value]) => [name, String(value)]));
}

/** `OPTIONS` for browsers; every other method of a path that exists is a 405 that says which ones there are. */
function addOtherMethods(
  app: FastifyInstance,
  path: string,
  routes: readonly Route[],
  judged: WeakMap<IncomingMessage, Judged>,
): void {
  const [first] = routes;
  if (first === undefined) return;
  const allow = [...routes.map((route) => route.method), 'OPTIONS'].join(', ');
  app.options(path, { config: { route: first, isPreflight: true } }, (request, reply) => {
    const wanted = request.headers['access-control-request-method'];
    const route = routes.find(({ method }) => method === wanted) ?? first;
    const requestedHeaders = request.headers['access-control-request-headers'];
    const cors = {
      ...webRequest(request, judgedOf(judged, request)),
      access: route.access,
      method: route.method,
      requestedHeaders,
    };
    return reply
      .code(204)
      .headers({ allow, ...preflightHeaders(cors) })
      .send();
  });
  const others = METHODS.filter((method) => routes.every((route) => route.method !== method));
  app.route({
    method: [...others, 'PATCH'],
    url: path,
    config: { route: first },
    handler: () => {
      throw new RequestError('method_not_allowed', `This address takes ${allow}.`, { headers: { allow } });
    },
  });
}
