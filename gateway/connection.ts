/**
 * One connection, which owns the requests that come over it: they end with it, those included that are not begun.
 *
 * HTTP/1.1 answers in order (RFC 9112, 9.3.2), so one request is begun at a time. A response behind another one has no
 * socket yet and would never hear that its client left; here such a request is only held, and nothing counts it or works
 * for it before its turn.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { SetTimer } from '../core/timer.ts';
import { whenClosed } from './when-closed.ts';

/**
 * Requests that wait behind the answer before them; each takes some 12 KB, however short it is. Node parses all that it
 * has read, thousands of them perhaps, and holds them for as long as the connection lives: so whoever sends more is
 * answered at once, and cut.
 */
export const MAX_PIPELINED = 100;
/** The body of a waiting request stays in the socket, and a socket that is not read does not tell that its client left. */
const UNREAD_SOCKET_MS = 60_000;
/** A client that has half-closed is probed after so long, later less often, until its answer begins. */
const FIRST_PROBE_MS = 250;
const MAX_PROBE_MS = 15_000;
/** Every client of HTTP/1.1 has to put up with it (RFC 9110, 15.2). One of HTTP/1.0 can't be probed, and is cut after so long. */
const INTERIM_ANSWER = 'HTTP/1.1 102 Processing\r\n\r\n';
const UNPROBED_CLIENT_MS = 60_000;

export interface ConnectionOptions {
  readonly setTimer: SetTimer;
  /** What is said to who sends more requests than may wait: a whole answer, after which the connection ends. */
  readonly tooManyWait: () => string;
  /** Called with each request in its turn. */
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void;
  /** Called with each message over a WebSocket. */
  readonly onTurn: () => void;
  /** Called when the answer before has ended, however it did. */
  readonly onEnd: () => void;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export class Connection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  #current: Exchange | undefined;
  #waiting: Exchange[] = [];
  #isInTurn = false;
  /** What the socket had sent when nothing of the current answer was among it. */
  #bytesBefore = 0;
  /** Said when all before it is answered; then the connection ends. */
  #lastWords: string | undefined;
  #cancelCut: (() => void) | undefined;
  #cancelProbe: (() => void) | undefined;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on('pause', () => this.#cutUnlessResumed());
    socket.on('resume', () => this.#cancelCut?.());
    socket.once('end', () => this.#probe(FIRST_PROBE_MS));
    socket.once('close', () => this.#end());
  }

  /** Waits for a request, and may be closed without a loss. */
  get isIdle(): boolean {
    return this.#current === undefined && !this.#isInTurn;
  }

  /** A message over a WebSocket is answered. */
  beginTurn(): void {
    this.#isInTurn = true;
    this.#options.onTurn();
  }

  endTurn(): void {
    this.#isInTurn = false;
    this.#options.onEnd();
  }

  /** Nothing is being answered: it is idle, or the rest of a request has yet to come. */
  get waitsForClient(): boolean {
    return this.#current?.request.complete !== true && !this.#isInTurn;
  }

  /** Takes a request whose head has come; its turn is when all before it are answered. */
  add(request: IncomingMessage, response: ServerResponse): void {
    // What came in one piece with too many others, or behind what can't be read, is still told of.
    if (!this.#socket.writable || this.#lastWords !== undefined) return;
    if (this.#current === undefined) return this.#begin({ request, response });
    if (this.#waiting.length === MAX_PIPELINED) return this.#refuseAll();
    this.#waiting.push({ request, response });
  }

  /**
   * Ends with an answer to what came and can't be read, in its turn: to the present request where its own body is what
   * can't be read, unless that is being answered by now.
   * @param answer to the request whose body it is, where it is one
   */
  refuse(answer: (request?: IncomingMessage) => string): void {
    const { request, response } = this.#current ?? {};
    if (request?.complete === true) this.#lastWords = answer();
    else this.#leave(response?.headersSent === true ? '' : answer(request));
  }

  /** Not for a client that takes nothing: while its connection drained, it could go on sending. */
  #refuseAll(): void {
    const isBegun = this.#current?.response.headersSent === true;
    if (!isBegun && this.#socket.writableLength === 0) this.#socket.write(this.#options.tooManyWait());
    if (isBegun || this.#socket.writableLength > 0) this.#socket.destroy();
    else this.#socket.destroySoon();
  }

  #leave(answer: string): void {
    if (answer !== '' && this.#socket.writable) this.#socket.write(answer);
    this.#socket.destroySoon();
  }

  #begin(exchange: Exchange): void {
    this.#current = exchange;
    this.#bytesBefore = this.#socket.bytesWritten;
    whenClosed(exchange.response, () => this.#next());
    this.#options.onRequest(exchange.request, exchange.response);
  }

  #next(): void {
    this.#current = undefined;
    this.#options.onEnd();
    // An answer may have said that it is the last one.
    if (!this.#socket.writable) return;
    const next = this.#waiting.shift();
    if (next !== undefined) return this.#begin(next);
    if (this.#lastWords !== undefined) this.#leave(this.#lastWords);
  }

  #end(): void {
    this.#waiting = [];
    this.#cancelCut?.();
    this.#cancelProbe?.();
  }

  #cutUnlessResumed(): void {
    this.#cancelCut?.();
    if (this.#waiting.length === 0) return;
    this.#cancelCut = this.#options.setTimer(UNREAD_SOCKET_MS, () => this.#socket.destroy());
  }

  /** A client that said its last word (`nc -N`) may wait for the answer or be gone: what is written to one that is gone fails. */
  #probe(delayMs: number): void {
    if (this.#current === undefined) return;
    const mayProbe = this.#current.request.httpVersionMinor > 0;
    this.#cancelProbe = this.#options.setTimer(mayProbe ? delayMs : UNPROBED_CLIENT_MS, () => {
      if (this.#socket.bytesWritten === this.#bytesBefore) {
        if (!mayProbe) return void this.#socket.destroy();
        this.#socket.write(INTERIM_ANSWER);
        this.#bytesBefore = this.#socket.bytesWritten;
      }
      this.#probe(Math.min(2 * delayMs, MAX_PROBE_MS));
    });
  }
}
