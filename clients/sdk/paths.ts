/** The paths to the gateway: which one is used, and which ones are worth trying when it breaks. */
import type { PathDescription, Transport } from './transport.ts';

/** The choice of a transport, until it breaks. Another choice of the same one is another object. */
export interface ChosenPath {
  readonly transport: Transport;
}

/** So often in a row a path may break without having brought anything: its connection may only have been old. */
const BREAKS_FORGIVEN = 1;

export class Paths {
  /** The nearest first, and among those the likeliest, as the gateway said. */
  readonly inOrder: readonly Transport[];
  #current: ChosenPath | undefined;
  #used: PathDescription | undefined;
  readonly #breaks = new Map<Transport, number>();

  constructor(transports: readonly Transport[]) {
    this.inOrder = transports;
    const [only] = transports;
    // With one path there is nothing to find out.
    if (only !== undefined && transports.length === 1) this.#current = { transport: only };
  }

  /** The one that worked last; `undefined` if it broke since, so that one has to be found by a handshake. */
  get current(): ChosenPath | undefined {
    return this.#current;
  }

  /** What is known of the one that worked last. */
  get used(): PathDescription | undefined {
    return this.#used;
  }

  /** All, in order; but those last that hold for a handshake and for nothing else. */
  get toTry(): readonly Transport[] {
    const isDoubtful = (transport: Transport): boolean => (this.#breaks.get(transport) ?? 0) > BREAKS_FORGIVEN;
    return [...this.inOrder.filter((one) => !isDoubtful(one)), ...this.inOrder.filter(isDoubtful)];
  }

  /** The paths that are nearer than the current one, which is none of the gateway's own network. */
  get nearer(): readonly Transport[] {
    return this.#current === undefined || isNear(this.#current.transport) ? [] : this.inOrder.filter(isNear);
  }

  worked(transport: Transport): void {
    this.#current = { transport };
    this.#used = transport.path;
  }

  /** It has brought something of a call's answer. */
  answered({ transport }: ChosenPath): void {
    this.#breaks.delete(transport);
  }

  /** It is used no more, unless another call has found that out already. */
  broke(path: ChosenPath): void {
    if (this.#current !== path || this.inOrder.length === 1) return;
    this.#breaks.set(path.transport, (this.#breaks.get(path.transport) ?? 0) + 1);
    this.#current = undefined;
  }

  close(): void {
    for (const transport of this.inOrder) transport.close?.();
  }
}

function isNear({ path }: Transport): boolean {
  return path?.kind === 'lan';
}
