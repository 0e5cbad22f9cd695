/**
 * How many connections may be open. Each takes a file, of which the system gives a process so many, and the service needs
 * some to do its work: so callers from other machines get a part of them, and no one address all of that. Where all are
 * taken, a new one takes the place of the oldest that only waits for its client: who holds connections keeps nobody out.
 */
import { ServiceError } from '../core/errors.ts';
import { RequestError } from './errors.ts';
import { isLoopbackAddress } from './guard.ts';
import { sourceOf } from './source.ts';

/** Of one address in the network, however many there are: a household behind a proxy, say. */
const MAX_OF_SOURCE = 256;
/** Of all that may be open. */
const SHARE_OF_OTHERS = 0.5;
const SHARE_OF_SOURCE = 0.25;

export interface PlaceHolder {
  /** Nothing is being answered: it waits for a request, or for the rest of one. */
  waitsForClient(): boolean;
  /** Gives the place back, too. */
  cut(): void;
}

/** A client that has connections open: a source in the network, or this machine. Oldest first. */
type Holders = Set<PlaceHolder>;

export class ConnectionPlaces {
  readonly #max: number;
  readonly #maxOfOthers: number;
  readonly #maxOfSource: number;
  readonly #here: Holders = new Set();
  readonly #others = new Map<string, Holders>();
  #countOfOthers = 0;

  constructor(max: number) {
    this.#max = max;
    this.#maxOfOthers = Math.floor(max * SHARE_OF_OTHERS);
    this.#maxOfSource = Math.min(MAX_OF_SOURCE, Math.floor(max * SHARE_OF_SOURCE));
  }

  /** @returns what gives the place back. @throws {RequestError} `rate_limited`, {ServiceError} `overloaded` */
  take(address: string | undefined, holder: PlaceHolder): () => void {
    const source = isLoopbackAddress(address) ? undefined : sourceOf(address);
    if (source !== undefined) this.#makeRoomFor(source);
    const isFull = this.#here.size + this.#countOfOthers >= this.#max;
    if (isFull && !this.#displaceOf(largest([this.#here, ...this.#others.values()]))) throw overloaded();
    return this.#add(source, holder);
  }

  #makeRoomFor(source: string): void {
    const own = this.#others.get(source);
    if (own !== undefined && own.size >= this.#maxOfSource && !this.#displaceOf(own)) {
      throw new RequestError(
        'rate_limited',
        'Too many requests of this address are being answered. Try again in a moment.',
      );
    }
    const isFull = this.#countOfOthers >= this.#maxOfOthers;
    if (isFull && !this.#displaceOf(largest([...this.#others.values()]))) throw overloaded();
  }

  #add(source: string | undefined, holder: PlaceHolder): () => void {
    const holders = source === undefined ? this.#here : (this.#others.get(source) ?? new Set());
    holders.add(holder);
    if (source !== undefined) {
      this.#others.set(source, holders);
      this.#countOfOthers += 1;
    }
    return () => {
      if (!holders.delete(holder) || source === undefined) return;
      this.#countOfOthers -= 1;
      if (holders.size === 0) this.#others.delete(source);
    };
  }

  /** @returns whether there was one that could go */
  #displaceOf(holders: Holders): boolean {
    for (const holder of holders) {
      if (!holder.waitsForClient()) continue;
      holder.cut();
      return true;
    }
    return false;
  }
}

function largest(parties: readonly Holders[]): Holders {
  return parties.reduce((one, other) => (other.size > one.size ? other : one), new Set<PlaceHolder>());
}

function overloaded(): ServiceError {
  return new ServiceError('overloaded', 'Too many connections are in use here. Try again in a moment.');
}
