/**
 * One connection to a relay: joined when it is made, shared by all who go over it, and ended when it was of no use for a
 * while. Who has it counts among its users until they let go of it.
 */
import { viewOf } from '../../channel/bytes.ts';
import { RELAY_CODE, RelayError } from '../../relay/wire/codes.ts';
import { hasEnd, SUBPROTOCOL } from '../../relay/wire/frame.ts';
import type { JoinedRelay, ClientStream, WebSocketLike } from '../../relay/wire/join-relay.ts';
import { joinRelay } from '../../relay/wire/join-relay.ts';
import type { Platform } from './platform.ts';
import { abortable } from './platform.ts';

export interface RelayRoute {
  readonly platform: Platform;
  readonly webSocket: (url: string, protocol: string) => WebSocketLike;
  /** `wss://host[:port]` */
  readonly url: string;
  readonly routingId: Uint8Array;
  /** What lets this device in now. */
  readonly tag: () => Uint8Array;
}

const IDLE_MS = 60_000;
/** How long a stream waits for another to end. Shorter than a call's timeout, so that it is known not to be sent. */
const FULL_MS = 8000;

export class RelayConnection {
  readonly #socket: WebSocketLike;
  readonly #setTimer: Platform['setTimer'];
  readonly #joined: Promise<JoinedRelay>;
  #users = 0;
  #streams = 0;
  #hasJoined = false;
  #isOver = false;
  #framesHeard = 0;
  #cancelIdle = (): void => undefined;
  /** Those who wait for a stream to end, since the relay allows no more of them at once. */
  #waiting: (() => void)[] = [];

  /** @throws what the WebSocket does for an address that it does not take */
  constructor({ platform, webSocket, url, routingId, tag }: RelayRoute) {
    this.#setTimer = platform.setTimer;
    this.#socket = webSocket(url, SUBPROTOCOL);
    this.#joined = joinRelay({
      webSocket: () => this.#socket,
      url,
      routingId,
      tag: tag(),
      now: platform.now,
      setTimer: platform.setTimer,
      random: () => viewOf(platform.crypto.randomBytes(4)).getUint32(0) / 2 ** 32,
    });
    // After `joinRelay`, which has dealt with the message by then.
    this.#socket.addEventListener('message', ({ data }) => this.#heard(data));
    void this.#watch();
  }

  async #watch(): Promise<void> {
    try {
      const { closed } = await this.#joined;
      this.#hasJoined = true;
      await closed;
    } catch {
      // It was not to be joined, which whoever waits for it hears as well.
    }
    this.retire();
  }

  /** It takes no new streams: the relay said so, it has ended, or it is in doubt. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get hasJoined(): boolean {
    return this.#hasJoined;
  }

  /** Grows with whatever the relay sends. */
  get framesHeard(): number {
    return this.#framesHeard;
  }

  #heard(message: unknown): void {
    this.#framesHeard += 1;
    // What has ended makes room, even if nobody has read it.
    if (this.#waiting.length === 0 || !(message instanceof ArrayBuffer)) return;
    if (hasEnd(new Uint8Array(message))) this.#wake();
  }

  hold(): void {
    this.#users += 1;
    this.#cancelIdle();
  }

  release(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    // Whoever asked for it has found another way meanwhile, or given up.
    if (this.#isOver || !this.#hasJoined) this.close();
    else this.#cancelIdle = this.#setTimer(IDLE_MS, () => this.close());
  }

  /** Waits until it is joined, and until the relay allows one more. @throws RelayError, or the signal's reason */
  async open(op: number, signal: AbortSignal): Promise<ClientStream> {
    const joined = await abortable(this.#joined, signal);
    for (;;) {
      try {
        const stream = joined.open(op);
        this.#streams += 1;
        return stream;
      } catch (error) {
        const isFull = error instanceof RelayError && error.code === RELAY_CODE.tooMany && this.#streams > 0;
        if (!isFull) {
          this.retire();
          throw error;
        }
      }
      await abortable(this.#place(), signal);
    }
  }

  /** Waits until it is worth another try. @throws RelayError if it takes too long */
  #place(): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = this.#setTimer(FULL_MS, () => reject(new RelayError(RELAY_CODE.tooMany)));
      this.#waiting.push(() => {
        cancel();
        resolve();
      });
    });
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** A stream that was opened is over, in both directions. */
  ended(): void {
    this.#streams -= 1;
    this.#wake();
  }

  /** No new streams; those that run go on. */
  retire(): void {
    this.#isOver = true;
    this.#wake();
    if (this.#users === 0) this.close();
  }

  /** Ends it, with all that runs. */
  close(): void {
    this.#isOver = true;
    this.#cancelIdle();
    this.#socket.close();
    void this.#joined.then(
      (joined) => joined.close(),
      () => undefined,
    );
  }
}
