/**
 * Connections that are to be made and wait for their turn: of each address one, in turn, and few before everything else
 * that the relay does. So whoever opens very many waits behind himself alone.
 */
import { findCrowding } from './fair-share.ts';

interface Arrival {
  readonly address: string;
  /** Makes the connection. */
  readonly admit: () => void;
  /** Another one took its place. */
  readonly refuse: () => void;
}

export interface ArrivalLimits {
  readonly inAll: number;
  /** 0 is no limit. */
  readonly perAddress: number;
}

const PER_TURN = 4;

export class Arrivals {
  readonly #limits: ArrivalLimits;
  /** By address, the oldest first; the address whose turn it is comes first. */
  readonly #waiting = new Map<string, Arrival[]>();

  constructor(limits: ArrivalLimits) {
    this.#limits = limits;
  }

  /** Where there are too many, the oldest of those who have most gives way. */
  add(arrival: Arrival): void {
    const { address } = arrival;
    if (this.#waiting.size === 0) setImmediate(() => this.#turn());
    this.#makeRoom(address);
    this.#waiting.set(address, [...(this.#waiting.get(address) ?? []), arrival]);
  }

  #makeRoom(address: string): void {
    const { inAll, perAddress } = this.#limits;
    const here = this.#waiting.get(address) ?? [];
    const all = [...this.#waiting.values()].flat();
    const isFullHere = perAddress > 0 && here.length >= perAddress;
    if (!isFullHere && all.length < inAll) return;
    const crowding = findCrowding(isFullHere ? here : all, { path: [address], pathOf: (one) => [one.address] });
    // Where each of very many addresses has one, the first of them gives way.
    const leaving = crowding?.holder ?? all[0];
    if (leaving !== undefined) this.#take(leaving.address).refuse();
  }

  #turn(): void {
    for (let served = 0; served < PER_TURN; served += 1) {
      const [address] = this.#waiting.keys();
      if (address === undefined) return;
      this.#take(address).admit();
    }
    if (this.#waiting.size > 0) setImmediate(() => this.#turn());
  }

  /** The oldest of an address, which is then the last to have its turn. */
  #take(address: string): Arrival {
    const [first, ...others] = this.#waiting.get(address) ?? [];
    if (first === undefined) throw new TypeError('nobody of that address waits');
    this.#waiting.delete(address);
    if (others.length > 0) this.#waiting.set(address, others);
    return first;
  }
}
