/** What came on a stream and waits for its one reader: never more than was granted, and granted again as it is taken. */
import { ByteQueue } from './byte-queue.ts';
import { RELAY_CODE, RelayError } from './codes.ts';

interface ReceivedBytesOptions {
  /** Bytes that may wait. */
  readonly limit: number;
  /** So many bytes no longer wait, whatever became of them. */
  taken(bytes: number): void;
  /** The other side may send so many more on this stream. */
  grant(bytes: number): void;
}

export class ReceivedBytes implements AsyncIterable<Uint8Array> {
  readonly #options: ReceivedBytesOptions;
  readonly #queue = new ByteQueue();
  /** What the other side may still send. */
  #credit: number;
  #toGrant = 0;
  #isEnded = false;
  #error: RelayError | undefined;
  #wake: (() => void) | undefined;

  constructor(options: ReceivedBytesOptions) {
    this.#options = options;
    this.#credit = options.limit;
  }

  /** @returns false, and takes nothing, if it is more than was granted */
  push(bytes: Uint8Array): boolean {
    if (bytes.length > this.#credit) return false;
    this.#credit -= bytes.length;
    this.#queue.push(bytes);
    this.#wake?.();
    return true;
  }

  end(): void {
    this.#isEnded = true;
    this.#wake?.();
  }

  /** What waits is dropped: whoever reads learns of the failure at once. */
  fail(error: RelayError): void {
    this.#error = error;
    const dropped = this.#queue.clear();
    if (dropped > 0) this.#options.taken(dropped);
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = this.#queue.shift(this.#options.limit);
      if (piece !== undefined) {
        this.#take(piece.length);
        yield piece;
      } else if (this.#error !== undefined) throw this.#error;
      else if (this.#isEnded) return;
      else await this.#more();
    }
  }

  async #more(): Promise<void> {
    if (this.#wake !== undefined) throw new RelayError(RELAY_CODE.internal, 'a stream has one reader');
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
  }

  #take(bytes: number): void {
    this.#toGrant += bytes;
    this.#options.taken(bytes);
    if (this.#isEnded || this.#error !== undefined || this.#toGrant * 4 < this.#options.limit) return;
    const credit = this.#toGrant;
    this.#toGrant = 0;
    this.#credit += credit;
    this.#options.grant(credit);
  }
}
