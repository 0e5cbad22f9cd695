/** A request that came over a socket, as the pipeline takes it. */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Exchange, OverSocket, Pipeline } from '../pipeline/exchange.ts';
import { whenClosed, whenHalfClosed } from '../when-closed.ts';
import { sendAnswer } from './send-answer.ts';

/** Brings each request to the pipeline, and its answer back. @param onError told of a stream that breaks */
export function createRequestListener(
  pipeline: Pipeline,
  onError: (error: unknown) => void,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    pipeline(new HttpExchange(request, response))
      .then((answer) => sendAnswer(request, response, answer))
      .catch((error: unknown) => {
        onError(error);
        response.destroy();
      });
  };
}

class HttpExchange implements Exchange {
  readonly id = randomUUID();
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly via: OverSocket;
  readonly #response: ServerResponse;
  /** One listener for all of them: several look on at each request. */
  #closings: ((isAnswered: boolean) => void)[] = [];

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.method = request.method ?? '';
    this.url = request.url ?? '/';
    this.headers = request.headers;
    this.via = { kind: 'socket', request };
    this.#response = response;
    whenClosed(response, () => {
      for (const then of this.#closings.splice(0)) then(response.writableFinished);
    });
  }

  /** The socket knows it first. */
  get isClosed(): boolean {
    return this.#response.destroyed || this.via.request.socket.destroyed;
  }

  onClosed(then: (isAnswered: boolean) => void): void {
    if (this.#response.destroyed) then(this.#response.writableFinished);
    else this.#closings.push(then);
  }

  onHalfClosed(then: () => void): void {
    whenHalfClosed(this.#response, then);
  }

  cut(): void {
    this.#response.destroy();
  }
}
