/**
 * The body of a request as it comes, copied into blocks of its own, unless a piece fills a block by itself: what its
 * records were padded with, and how many of them there are, takes no memory here. So what is counted is what is held.
 */
const MIN_BLOCK_BYTES = 1024;
const MAX_BLOCK_BYTES = 65_536;
/** Of the memory that a piece came in, which is kept with it. */
const MAX_SPARE_BYTES = 64;

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

  /** @param data is not changed any more. @returns false where there is no memory for all of it */
  append(data: Uint8Array): boolean {
    if (isBlock(data)) return this.#addPiece(data);
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
    this.#endBlock();
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
    if (!this.#hold(bytes)) return false;
    const block = new Uint8Array(bytes);
    this.#blocks.push(block);
    this.#free = block;
    return true;
  }

  #addPiece(data: Uint8Array): boolean {
    if (!this.#hold(data.buffer.byteLength)) return false;
    this.#endBlock();
    this.#blocks.push(data);
    return true;
  }

  #hold(bytes: number): boolean {
    if (!this.#reserve(bytes)) return false;
    this.#heldBytes += bytes;
    return true;
  }

  #endBlock(): void {
    const last = this.#blocks.pop();
    if (last !== undefined) this.#blocks.push(last.subarray(0, last.length - this.#free.length));
    this.#free = new Uint8Array();
  }
}

/** A large record's data is as good as a block of our own, and copying it would double what it costs to keep. */
function isBlock({ length, buffer }: Uint8Array): boolean {
  return length > MAX_BLOCK_BYTES / 2 && length <= MAX_BLOCK_BYTES && buffer.byteLength - length <= MAX_SPARE_BYTES;
}
