/**
 * Holds one connection to the window that it was given. What the relay has taken it grants again, as fast as the rate of
 * the share of whoever uses it allows: whoever sends faster is slowed down, and loses nothing.
 */
import type { RateShare } from './fair-rate.ts';
import type { FrameSender } from './send-scheduler.ts';

export class ReceiveWindow {
  readonly #peer: Pick<FrameSender, 'send'>;
  readonly #share: RateShare;
  readonly #window: number;
  #credit: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(peer: Pick<FrameSender, 'send'>, { share, window }: { share: RateShare; window: number }) {
    this.#peer = peer;
    this.#share = share;
    this.#window = window;
    this.#credit = window;
  }

  /** @param share whose bytes they are. @returns false if that was more than was granted */
  arrived(bytes: number, share: RateShare = this.#share): boolean {
    this.#credit -= bytes;
    share.spend(bytes);
    if (this.#credit < 0) return false;
    if ((this.#window - this.#credit) * 4 >= this.#window) this.#grant();
    return true;
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #grant(): void {
    if (this.#timer !== undefined) return;
    const waitMs = this.#share.waitMs();
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
