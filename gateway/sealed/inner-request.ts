/**
 * Requests that came inside a sealed call. They go the way of all others, so that every rule holds once; their caller goes
 * beside them, never in a header.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { HeaderList, RequestHead } from '../../channel/head.ts';
import { REQUEST_HEADERS } from '../../channel/request-bounds.ts';
import type { Caller } from '../caller.ts';
import { RequestError } from '../errors.ts';
import { METHODS } from '../http/node-http.ts';
import type { Exchange, OverChannel, Pipeline } from '../pipeline/exchange.ts';

export interface InnerRequest extends Pick<RequestHead, 'method' | 'path' | 'query' | 'headers'> {
  /** In pieces, none too long for one turn. */
  readonly body: readonly Uint8Array[];
  readonly signal: AbortSignal;
  /** Why it is not acted on, where that is known by now. */
  readonly fault?: OverChannel['fault'];
}

export interface InnerAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  /** `null` for an answer that is made as it goes. */
  readonly bodyBytes: number | null;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Never rejects: what goes wrong is the answer. */
export type RunInner = (request: InnerRequest, caller: Caller | undefined) => Promise<InnerAnswer>;

/** What the log says for a method that is none: it is as long as a device likes. */
const UNKNOWN_METHOD = 'UNKNOWN';

/** Of a socket, or for a browser that asked over one. */
const UNSEALED_HEADERS = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date', 'vary']);

/** Nothing that a URL parser would take for a query or a fragment. */
const PATH = /^\/[\x21\x24-\x3e\x40-\x5b\x5d-\x7e]*$/u;
const QUERY = /^[\x21\x22\x24-\x7e]*$/u;

/** The way from the channel server to the pipeline, of which each needs the other: opened before both. */
export interface InnerCalls {
  readonly run: RunInner;
  /** Called once, before anybody comes in. */
  leadTo(pipeline: Pipeline): void;
}

export function createInnerCalls(): InnerCalls {
  let pipeline: Pipeline | undefined;
  return {
    leadTo(destination) {
      pipeline = destination;
    },
    async run(request, caller) {
      if (pipeline === undefined) throw new TypeError('a request came in before the gateway was made');
      return runInner(pipeline, request, caller);
    },
  };
}

async function runInner(pipeline: Pipeline, request: InnerRequest, caller: Caller | undefined): Promise<InnerAnswer> {
  const exchange = new InnerExchange(request, caller);
  const { status, headers, body, cut } = await pipeline(exchange);
  const head = { status, headers: answerHeaders(headers, request.method) };
  if (typeof body === 'string') {
    const bytes = Buffer.from(body);
    exchange.close(true);
    return { ...head, bodyBytes: bytes.length, body: oneOf(bytes) };
  }
  cut?.addEventListener('abort', () => exchange.cut(), { once: true });
  return { ...head, bodyBytes: null, body: exchange.carry(body) };
}

async function* oneOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

class InnerExchange implements Exchange {
  readonly id = randomUUID();
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly via: OverChannel;
  readonly #signal: AbortSignal;
  #closings: ((isAnswered: boolean) => void)[] = [];
  /** Wakes who waits for the next piece. */
  #wake: (() => void) | undefined;
  #ending: { readonly isAnswered: boolean } | undefined;

  readonly cut = (): void => this.close(false);

  constructor(request: InnerRequest, caller: Caller | undefined) {
    const { method, path, query, headers, body, signal } = request;
    this.method = METHODS.includes(method) ? method : UNKNOWN_METHOD;
    this.url = query === undefined ? path : `${path}?${query}`;
    this.headers = { 'user-agent': 'sealed', ...Object.fromEntries(allowedHeaders(headers)) };
    this.via = { kind: 'channel', caller, body, fault: request.fault ?? faultOf(request) };
    this.#signal = signal;
    if (signal.aborted) this.cut();
    else signal.addEventListener('abort', this.cut, { once: true });
  }

  get isClosed(): boolean {
    return this.#ending !== undefined;
  }

  onClosed(then: (isAnswered: boolean) => void): void {
    if (this.#ending === undefined) this.#closings.push(then);
    else then(this.#ending.isAnswered);
  }

  /** A device says that it leaves by ending the call. */
  onHalfClosed(): void {
    // There are no halves here.
  }

  /** The pieces of the answer. @throws {Error} when the exchange is cut */
  async *carry(pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
    const source = pieces[Symbol.asyncIterator]();
    try {
      for (;;) {
        const step = await this.#next(source);
        if (step.done === true) return this.close(true);
        yield typeof step.value === 'string' ? Buffer.from(step.value) : step.value;
      }
    } finally {
      this.close(false);
      // Its maker was told; what it still does is nobody's to wait for.
      source.return?.().catch(() => undefined);
    }
  }

  #next<Piece>(source: AsyncIterator<Piece>): Promise<IteratorResult<Piece>> {
    return new Promise((resolve, reject) => {
      this.#wake = () => reject(new Error('the answer was cut off'));
      if (this.#ending !== undefined) this.#wake();
      source.next().then(resolve, reject);
    });
  }

  /** @param isAnswered whether all of the answer is there */
  close(isAnswered: boolean): void {
    if (this.#ending !== undefined) return;
    this.#ending = { isAnswered };
    this.#signal.removeEventListener('abort', this.cut);
    for (const then of this.#closings.splice(0)) then(isAnswered);
    this.#wake?.();
  }
}

/** The headers that count of those that a device sent. */
export function allowedHeaders(headers: HeaderList): HeaderList {
  return headers
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name, value]) => REQUEST_HEADERS.has(name) && /^[\t\x20-\x7e\x80-\xff]*$/u.test(value));
}

/** What no HTTP request could ask for, as it is answered outside. */
function faultOf({ method, path, query = '' }: InnerRequest): OverChannel['fault'] {
  if (!METHODS.includes(method)) return { error: new RequestError('not_implemented', 'There is no such method.') };
  if (PATH.test(path) && QUERY.test(query)) return undefined;
  return { error: new RequestError('bad_request', 'The address is malformed.') };
}

function answerHeaders(headers: Readonly<Record<string, string>>, method: string): HeaderList {
  // The head says how long a body is, but for HEAD, which is asked for what GET would give (RFC 9110, 9.3.2).
  const isSealed = (name: string): boolean =>
    name === 'content-length' ? method === 'HEAD' : !UNSEALED_HEADERS.has(name) && !name.startsWith('access-control-');
  return Object.entries(headers).filter(([name]) => isSealed(name));
}
