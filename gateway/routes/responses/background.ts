/**
 * Responses that are made in the background: they go on when their client leaves, which comes back to ask how far they are,
 * to listen to the rest, or to cancel them. What goes on is only in this process; that it did is on the disk.
 */
import { RequestError } from '../../errors.ts';
import { DONE_EVENT } from '../../wire/event-stream.ts';

/** Of one owner, at once. */
export const BACKGROUND_OF_AN_OWNER = 8;
/** Of all owners together. */
export const BACKGROUND_OF_ALL = 32;

const RETRY_AFTER_SECONDS = '5';

/** One that goes on. */
export interface BackgroundResponse {
  readonly status: 'queued' | 'in_progress';
  /** Its events from this one on, until its end. */
  events(from: number): AsyncIterable<string>;
  /** Resolves when it has ended and that is stored. */
  cancel(): Promise<void>;
}

interface NewResponse {
  readonly owner: string;
  readonly id: string;
  /** All of its events, each as it goes over the wire, to `[DONE]`. Never throws, and ends soon after `cancel`. */
  readonly events: AsyncIterable<string>;
  readonly cancel: () => void;
}

export interface BackgroundResponses {
  /** @throws {RequestError} `rate_limited` where the owner, or all of them, have as many as they may */
  assertRoom(owner: string): void;
  begin(response: NewResponse): BackgroundResponse;
  find(owner: string, id: string): BackgroundResponse | undefined;
}

export function createBackgroundResponses(): BackgroundResponses {
  const running = new Map<string, { readonly owner: string; readonly response: Running }>();
  return {
    assertRoom(owner) {
      const own = [...running.values()].filter((one) => one.owner === owner).length;
      if (own >= BACKGROUND_OF_AN_OWNER) {
        throw tooMany(`${BACKGROUND_OF_AN_OWNER} responses of yours are being made in the background.`);
      }
      if (running.size >= BACKGROUND_OF_ALL) throw tooMany('Too many responses are being made in the background.');
    },
    begin({ owner, id, events, cancel }) {
      const response = new Running(cancel);
      running.set(id, { owner, response });
      void response.read(events).finally(() => running.delete(id));
      return response;
    },
    find(owner, id) {
      const found = running.get(id);
      return found?.owner === owner ? found.response : undefined;
    },
  };
}

function tooMany(what: string): RequestError {
  const message = `${what} Try again when one of them has ended, or cancel one.`;
  return new RequestError('rate_limited', message, { headers: { 'retry-after': RETRY_AFTER_SECONDS } });
}

/** An event and the empty line that ends it. */
const EVENT = /[^]+?\n\n/g;

class Running implements BackgroundResponse {
  readonly #cancel: () => void;
  /** The number of an event is its place in here; no answer is longer than its model's context. */
  readonly #events: string[] = [];
  #isOver = false;
  #progress = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();

  constructor(cancel: () => void) {
    this.#cancel = cancel;
  }

  get status(): 'queued' | 'in_progress' {
    return this.#events.length <= EVENTS_WHILE_QUEUED ? 'queued' : 'in_progress';
  }

  async read(pieces: AsyncIterable<string>): Promise<void> {
    for await (const piece of pieces) {
      for (const [event] of piece.matchAll(EVENT)) if (event !== DONE_EVENT) this.#events.push(event);
      this.#wake();
    }
    this.#isOver = true;
    this.#wake();
    this.#over.resolve();
  }

  async *events(from: number): AsyncGenerator<string> {
    for (let next = from; ; next += 1) {
      while (next >= this.#events.length && !this.#isOver) await this.#progress.promise;
      const event = this.#events[next];
      if (event === undefined) break;
      yield event;
    }
    yield DONE_EVENT;
  }

  async cancel(): Promise<void> {
    this.#cancel();
    await this.#over.promise;
  }

  #wake(): void {
    this.#progress.resolve();
    this.#progress = Promise.withResolvers();
  }
}

/** `response.created` and `response.queued`. */
const EVENTS_WHILE_QUEUED = 2;
