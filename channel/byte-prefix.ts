/** Collects a header of known length from bytes that may arrive one at a time. */
export class BytePrefix {
  readonly #bytes: Uint8Array;
  #filled = 0;

  constructor(length: number) {
    this.#bytes = new Uint8Array(length);
  }

  /** All of it, once it is there. */
  get complete(): Uint8Array | undefined {
    return this.#filled === this.#bytes.length ? this.#bytes : undefined;
  }

  get arrived(): Uint8Array {
    return this.#bytes.subarray(0, this.#filled);
  }

  /** Takes what is still missing, and returns what is left of the bytes. */
  take(bytes: Uint8Array): Uint8Array {
    const taken = bytes.subarray(0, this.#bytes.length - this.#filled);
    this.#bytes.set(taken, this.#filled);
    this.#filled += taken.length;
    return bytes.subarray(taken.length);
  }
}
