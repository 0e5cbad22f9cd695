/**
 * Connections that are to be made and wait for their turn: of each address one, in turn, and few before everything else
 * that the relay does. So whoever opens very many waits behind himself alone.
 */
import { FairShare } from './fair-share.ts';

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
  readonly #waiting = new FairShare<Arrival>();
  /** Of those that wait; the one whose turn it is comes first. */
  readonly #addresses = new Set<string>();

  constructor(limits: ArrivalLimits) {
    this.#limits = limits;
  }

  /** Where there are too many, the oldest of those who have most gives way. */
  add(arrival: Arrival): void {
    const { address } = arrival;
    if (this.#waiting.size === 0) setImmediate(() => this.#turn());
    if (this.#isFull(address)) this.#takeCrowding(address)?.refuse();
    this.#waiting.add(arrival, [address]);
    this.#addresses.add(address);
  }

  #isFull(address: string): boolean {
    const { inAll, perAddress } = this.#limits;
    return this.#waiting.size >= inAll || (perAddress > 0 && this.#waiting.sizeOf([address]) >= perAddress);
  }

  #takeCrowding(address: string): Arrival | undefined {
    const { perAddress } = this.#limits;
    if (perAddress > 0 && this.#waiting.sizeOf([address]) >= perAddress) return this.#take(address);
    const crowding = this.#waiting.findCrowding([address]);
    // Where each of very many addresses has one, the first of them gives way.
    return crowding === undefined ? this.#takeNext() : this.#take(crowding.holder.address);
  }

  #turn(): void {
    for (let served = 0; served < PER_TURN; served += 1) this.#takeNext()?.admit();
    if (this.#waiting.size > 0) setImmediate(() => this.#turn());
  }

  #takeNext(): Arrival | undefined {
    const [address] = this.#addresses;
    return address === undefined ? undefined : this.#take(address);
  }

  /** The oldest of an address, which is then the last to have its turn. */
  #take(address: string): Arrival | undefined {
    const oldest = this.#waiting.oldestIn([address]);
    if (oldest !== undefined) this.#waiting.delete(oldest);
    this.#addresses.delete(address);
    if (this.#waiting.sizeOf([address]) > 0) this.#addresses.add(address);
    return oldest;
  }
}
