/**
 * One connection to a relay: joined when it is made, shared by all who go over it, and ended when it was of no use for a
 * while. Who has it counts among its users until they let go of it.
 */
import { viewOf } from '../../channel/bytes.ts';
import { RELAY_CODE, RelayError } from '../../relay/wire/codes.ts';
import { SUBPROTOCOL } from '../../relay/wire/frame.ts';
import type { JoinedRelay, RelayedStream, WebSocketLike } from '../../relay/wire/join-relay.ts';
import { joinRelay } from '../../relay/wire/join-relay.ts';
import type { Platform } from './platform.ts';
import { abortable } from './platform.ts';

export interface RelayWay {
  readonly platform: Platform;
  readonly webSocket: (url: string, protocol: string) => WebSocketLike;
  /** `wss://host[:port]` */
  readonly url: string;
  readonly routingId: Uint8Array;
  /** What lets this device in now. */
  readonly tag: () => Uint8Array;
}

const IDLE_MS = 60_000;

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
  constructor({ platform, webSocket, url, routingId, tag }: RelayWay) {
    this.#setTimer = platform.setTimer;
    this.#socket = webSocket(url, SUBPROTOCOL);
    this.#socket.addEventListener('message', () => (this.#framesHeard += 1));
    this.#joined = joinRelay({
      webSocket: () => this.#socket,
      url,
      routingId,
      tag: tag(),
      now: platform.now,
      setTimer: (run, delayMs) => platform.setTimer(delayMs, run),
      random: () => viewOf(platform.crypto.randomBytes(4)).getUint32(0) / 2 ** 32,
    });
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
  async open(op: number, signal: AbortSignal): Promise<RelayedStream> {
    const joined = await abortable(this.#joined, signal);
    for (;;) {
      try {
        const stream = joined.open(op);
        this.#streams += 1;
        return stream;
      } catch (error) {
        const isFull = error instanceof RelayError && error.code === RELAY_CODE.tooMany && this.#streams > 0;
        if (!isFull) this.retire();
        if (!isFull) throw error;
      }
      await abortable(new Promise<void>((resolve) => this.#waiting.push(resolve)), signal);
    }
  }

  /** A stream that was opened is over, in both directions. */
  ended(): void {
    this.#streams -= 1;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** No new streams; those that run go on. */
  retire(): void {
    this.#isOver = true;
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
