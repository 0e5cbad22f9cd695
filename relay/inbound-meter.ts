/**
 * Holds one connection to the window that it was given. What the relay has taken it grants again, as fast as the rate of
 * its gateway allows: whoever sends faster is slowed down, and loses nothing.
 */
import type { RelayPeer } from './relay-peer.ts';
import type { TokenBucket } from './token-bucket.ts';

export class InboundMeter {
  readonly #peer: RelayPeer;
  readonly #rate: TokenBucket;
  readonly #window: number;
  #credit: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(peer: RelayPeer, { rate, window }: { rate: TokenBucket; window: number }) {
    this.#peer = peer;
    this.#rate = rate;
    this.#window = window;
    this.#credit = window;
  }

  /** @returns false if that was more than was granted */
  arrived(bytes: number): boolean {
    this.#credit -= bytes;
    this.#rate.spend(bytes);
    if (this.#credit < 0) return false;
    if ((this.#window - this.#credit) * 4 >= this.#window) this.#grant();
    return true;
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #grant(): void {
    if (this.#timer !== undefined) return;
    const waitMs = this.#rate.waitMs();
    if (waitMs > 0) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#grant();
      }, waitMs);
      return;
    }
    const credit = this.#window - this.#credit;
    this.#credit = this.#window;
    this.#peer.send({ type: 'window', stream: 0, credit });
  }
}
