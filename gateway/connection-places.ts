/**
 * How many connections may be open. Each takes a file, of which the system gives a process so many, and the service needs
 * some to do its work: so callers from other machines get a part of them, and no one address all of that.
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

const OTHERS = 'other machines';

export class ConnectionPlaces {
  readonly #max: number;
  readonly #maxOfOthers: number;
  readonly #maxOfSource: number;
  /** Of each source in the network, and of all of them. */
  readonly #open = new Map<string, number>();
  #total = 0;

  constructor(max: number) {
    this.#max = max;
    this.#maxOfOthers = Math.floor(max * SHARE_OF_OTHERS);
    this.#maxOfSource = Math.min(MAX_OF_SOURCE, Math.floor(max * SHARE_OF_SOURCE));
  }

  /** @returns what gives the place back. @throws {RequestError} `rate_limited`, {ServiceError} `overloaded` */
  take(address: string | undefined): () => void {
    const sources = isLoopbackAddress(address) ? [] : [sourceOf(address), OTHERS];
    const [ofSource = 0, ofOthers = 0] = sources.map((source) => this.#open.get(source) ?? 0);
    if (ofSource >= this.#maxOfSource) {
      throw new RequestError('rate_limited', 'This address has too many connections open. Close some of them.');
    }
    if (ofOthers >= this.#maxOfOthers || this.#total >= this.#max) {
      throw new ServiceError('overloaded', 'Too many connections are open here. Try again in a moment.');
    }
    this.#add(sources, 1);
    return () => this.#add(sources, -1);
  }

  #add(sources: readonly string[], change: 1 | -1): void {
    this.#total += change;
    for (const source of sources) {
      const count = (this.#open.get(source) ?? 0) + change;
      if (count === 0) this.#open.delete(source);
      else this.#open.set(source, count);
    }
  }
}
