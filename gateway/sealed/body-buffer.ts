/**
 * The body of a request as it comes, copied into blocks of its own: what its records were padded with, and how many of
 * them there are, takes no memory here. So what is counted is what is held.
 */
const MIN_BLOCK_BYTES = 1024;
const MAX_BLOCK_BYTES = 65_536;

export class BodyBuffer {
  readonly #reserve: (bytes: number) => boolean;
  #blocks: Uint8Array[] = [];
  #heldBytes = 0;
  /** What is left of the last block. */
  #free = new Uint8Array();

  /** @param reserve asked for each block; false where it would be too much */
  constructor(reserve: (bytes: number) => boolean) {
    this.#reserve = reserve;
  }

  /** What was reserved: never less than what came, and at most twice as much, or a kibibyte. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** @returns false where there is no memory for all of it */
  append(data: Uint8Array): boolean {
    for (let rest = data; rest.length > 0;) {
      if (this.#free.length === 0 && !this.#addBlock(rest.length)) return false;
      const piece = rest.subarray(0, this.#free.length);
      this.#free.set(piece);
      this.#free = this.#free.subarray(piece.length);
      rest = rest.subarray(piece.length);
    }
    return true;
  }

  /** All that came, none longer than 64 KiB: to copy 32 MiB into one would hold up everybody. Nothing is appended afterwards. */
  pieces(): readonly Uint8Array[] {
    const last = this.#blocks.pop();
    if (last !== undefined) this.#blocks.push(last.subarray(0, last.length - this.#free.length));
    this.#free = new Uint8Array();
    return this.#blocks;
  }

  /** Lets go of it. @returns what is not held any more */
  clear(): number {
    const heldBytes = this.#heldBytes;
    this.#blocks = [];
    this.#free = new Uint8Array();
    this.#heldBytes = 0;
    return heldBytes;
  }

  #addBlock(wanted: number): boolean {
    const bytes = Math.min(MAX_BLOCK_BYTES, Math.max(MIN_BLOCK_BYTES, wanted, this.#heldBytes));
    if (!this.#reserve(bytes)) return false;
    const block = new Uint8Array(bytes);
    this.#blocks.push(block);
    this.#free = block;
    this.#heldBytes += bytes;
    return true;
  }
}
