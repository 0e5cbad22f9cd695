/**
 * Work that a request begins and that goes on when the request is over. It counts under the key that the request came with,
 * ends when that is revoked, and has a row of its own in the request log, with what its models did.
 */
import type { LiveRequests } from '../live-requests.ts';
import type { Caller } from '../caller.ts';
import type { Recorder } from '../request-log/recorder.ts';
import type { Detached, Route, Services } from '../route.ts';
import type { Exchange } from './exchange.ts';

interface DetachedOptions {
  readonly exchange: Exchange;
  readonly route: Route;
  readonly caller: Caller;
  readonly services: Services;
  readonly recorder: Recorder;
  readonly live: LiveRequests;
}

export function detach({ exchange: from, route, caller, services, recorder, live }: DetachedOptions): Detached {
  const exchange = new DetachedExchange(from);
  const record = recorder.begin(exchange);
  record.aim(route);
  record.identify(caller);
  const request = caller.keyId === undefined ? undefined : live.enter(caller.keyId, exchange);
  // It goes on from now: whoever revokes the key waits for its end.
  void request?.run(() => exchange.closed).catch(() => undefined);
  const { signal } = exchange;
  return {
    services: record.watchServices(services),
    signal: request === undefined ? signal : AbortSignal.any([signal, request.signal]),
    end() {
      record.answer(200, '');
      exchange.close(true);
    },
  };
}

/** As the request that began it, but for its end. */
class DetachedExchange implements Exchange {
  readonly id: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Exchange['headers'];
  readonly via: Exchange['via'];
  readonly #cut = new AbortController();
  readonly #closed = Promise.withResolvers<void>();
  #closings: ((isAnswered: boolean) => void)[] = [];
  #isAnswered: boolean | undefined;

  constructor({ id, method, url, headers, via }: Exchange) {
    this.id = id;
    this.method = method;
    this.url = url;
    this.headers = headers;
    this.via = via;
  }

  get signal(): AbortSignal {
    return this.#cut.signal;
  }

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  get isClosed(): boolean {
    return this.#isAnswered !== undefined;
  }

  onClosed(then: (isAnswered: boolean) => void): void {
    if (this.#isAnswered === undefined) this.#closings.push(then);
    else then(this.#isAnswered);
  }

  /** Nobody waits for an answer at the other end. */
  onHalfClosed(): void {}

  cut(): void {
    this.#cut.abort();
    this.close(false);
  }

  close(isAnswered: boolean): void {
    if (this.isClosed) return;
    this.#isAnswered = isAnswered;
    this.#closed.resolve();
    for (const then of this.#closings.splice(0)) then(isAnswered);
  }
}
