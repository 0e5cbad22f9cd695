/**
 * A request and its answer as the pipeline sees them, whichever adapter brings them: `http/` over a socket, `sealed/`
 * from inside a sealed call.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Caller } from '../caller.ts';

export interface Exchange extends Closing {
  /** Names it to its client, and in the log. */
  readonly id: string;
  readonly method: string;
  /** As its client wrote it. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly via: OverSocket | OverChannel;
}

/** How an exchange ends, for all that counts or works for it. */
export interface Closing {
  /** Nothing more of the answer can be sent. */
  readonly isClosed: boolean;
  /**
   * Calls `then` once, when nothing more of the answer can be sent; at once where that is so by now.
   * @param then is told whether all of it was sent
   */
  onClosed(then: (isAnswered: boolean) => void): void;
  /** Calls `then` if the client says its last word before that: it waits for the answer, or it has left. */
  onHalfClosed(then: () => void): void;
  /** Ends it now, whatever of the answer was sent. */
  cut(): void;
}

export interface OverSocket {
  readonly kind: 'socket';
  readonly request: IncomingMessage;
  /** What came over the WebSocket that the request opened, and is asked in the request's name. */
  readonly message?: { readonly body: readonly Uint8Array[] };
}

export interface OverChannel {
  readonly kind: 'channel';
  /** The device whose session it is. Without one the request is refused. */
  readonly caller: Caller | undefined;
  readonly body: readonly Uint8Array[];
  /** Why it is not acted on, where that was found out before: it is refused like all others, and recorded. */
  readonly fault: { readonly error: unknown } | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Text is sent whole, pieces one by one, as fast as they are taken. */
  readonly body: string | AsyncIterable<string | Uint8Array>;
  /** Fires when the exchange is to be cut in the middle of a stream, even though its client does not read. */
  readonly cut?: AbortSignal | undefined;
  /** Of a status of 101: the way of each message over the WebSocket. */
  readonly messages?: Pipeline | undefined;
}

/** Never rejects: what goes wrong is the answer. */
export type Pipeline = (exchange: Exchange) => Promise<Answer>;
