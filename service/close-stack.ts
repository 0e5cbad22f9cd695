/** What is to be closed at the end, in the reverse order of its opening: what uses something goes before it. */
export class CloseStack {
  #closings: (() => Promise<void> | void)[] = [];

  /** @param close is called once, when all that was opened later is closed */
  readonly onClose = (close: () => Promise<void> | void): void => void this.#closings.push(close);

  /** Closes all, whatever of it fails. @throws the first failure, when all the rest is closed */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (const close of this.#closings.splice(0).toReversed()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
