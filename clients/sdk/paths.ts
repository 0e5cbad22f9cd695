/** The ways to the gateway, in the order in which they are worth trying. */
import type { Transport } from './transport.ts';

export class Paths {
  /** The likeliest first, as the gateway said. */
  readonly inOrder: readonly Transport[];
  #current: Transport | undefined;

  constructor(transports: readonly Transport[]) {
    this.inOrder = transports;
    this.#current = transports[0];
  }

  /** The one that worked last. */
  get current(): Transport | undefined {
    return this.#current;
  }

  /** All of them, the current one first. */
  get currentFirst(): readonly Transport[] {
    const current = this.#current;
    return current === undefined ? [] : [current, ...this.inOrder.filter((other) => other !== current)];
  }

  worked(transport: Transport): void {
    this.#current = transport;
  }

  /** The next one takes its place, unless another call has found that out already. */
  broke(transport: Transport): void {
    if (this.#current !== transport) return;
    const next = (this.inOrder.indexOf(transport) + 1) % this.inOrder.length;
    this.#current = this.inOrder[next];
  }
}
