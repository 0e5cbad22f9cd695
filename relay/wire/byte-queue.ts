/**
 * Bytes that wait, in the order in which they came. It copies them into blocks of its own: a peer that sends a byte at a
 * time costs little more than its bytes, and no message is kept alive for the few bytes of it that wait.
 */

const BLOCK_BYTES = 4096;

interface Block {
  readonly bytes: Uint8Array;
  start: number;
  end: number;
}

export class ByteQueue {
  #blocks: Block[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(bytes: Uint8Array): void {
    const tail = this.#blocks.at(-1);
    const room = tail === undefined ? 0 : tail.bytes.length - tail.end;
    const first = bytes.subarray(0, room);
    if (tail !== undefined && first.length > 0) {
      tail.bytes.set(first, tail.end);
      tail.end += first.length;
    }
    const rest = bytes.subarray(first.length);
    if (rest.length > 0) {
      const block = new Uint8Array(Math.max(rest.length, BLOCK_BYTES));
      block.set(rest);
      this.#blocks.push({ bytes: block, start: 0, end: rest.length });
    }
    this.#length += bytes.length;
  }

  /** The next bytes, at least one and `limit` at most; `undefined` if none wait. */
  shift(limit: number): Uint8Array | undefined {
    const [head] = this.#blocks;
    if (head === undefined || limit <= 0) return undefined;
    const end = Math.min(head.end, head.start + limit);
    const bytes = head.bytes.subarray(head.start, end);
    head.start = end;
    // What was handed out is never written to again: the reader may keep it.
    if (head.start === head.end) this.#blocks.shift();
    this.#length -= bytes.length;
    return bytes;
  }

  /** @returns how many bytes were dropped */
  clear(): number {
    const dropped = this.#length;
    this.#blocks = [];
    this.#length = 0;
    return dropped;
  }
}
