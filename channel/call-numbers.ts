/** How many calls a session has: one bit each says which numbers are spent. */
export const CALL_NUMBERS = 4096;

/** The numbers of one session. There is no window and nothing grows: a number is out of range, free or spent. */
export class CallNumbers {
  readonly #spent = new Uint32Array(CALL_NUMBERS / 32);

  /** In range and not spent: worth deriving a key for. Takes any number that a stranger may write. */
  isFree(callNumber: number): boolean {
    return callNumber < CALL_NUMBERS && (this.#word(callNumber) & bit(callNumber)) === 0;
  }

  /** The test-and-set: of all who present a number, one gets `true`. */
  spend(callNumber: number): boolean {
    if (!this.isFree(callNumber)) return false;
    this.#spent[callNumber >>> 5] = this.#word(callNumber) | bit(callNumber);
    return true;
  }

  #word(callNumber: number): number {
    return this.#spent[callNumber >>> 5] ?? 0;
  }
}

function bit(callNumber: number): number {
  return 1 << (callNumber & 31);
}
