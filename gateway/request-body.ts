/**
 * A request's body in memory: its JSON value, read from the bytes as they come, and of the bytes themselves no more than
 * the request log may show. So a body that is no JSON, or has more structure than a request can need, never takes the
 * memory or the time that its length would allow.
 */
import { JsonError } from '../core/json/json-error.ts';
import { JsonReader } from '../core/json/json-reader.ts';
import type { TakeTurn } from '../core/turns.ts';
import type { BodyLease } from './body-budget.ts';
import { RequestError } from './errors.ts';

/** What the request log may look at. */
const HEAD_BYTES = 16 * 1024;

/** What is read in one go: about a millisecond's work, four where every other byte begins a value. */
const SLICE_BYTES = 64 * 1024;

/** A short body waits for nobody's turn. */
export const SHORT_BYTES = 16 * 1024;

export class RequestBody {
  #bytes = 0;
  readonly #head: Uint8Array[] = [];
  readonly #reader: JsonReader | undefined;
  #fault: unknown;
  #value: { readonly json: unknown } | undefined;

  /** @param keep false counts the bytes and forgets them */
  constructor({ keep }: { readonly keep: boolean }) {
    this.#reader = keep ? new JsonReader() : undefined;
  }

  /** Whether what comes is still kept, in any form. */
  get isKept(): boolean {
    return this.#reader !== undefined && this.#fault === undefined;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The first bytes of it. */
  head(): Uint8Array {
    return Buffer.concat(this.#head);
  }

  /** @throws {RequestError} `bad_request`, saying what is wrong but never quoting the body */
  json(): unknown {
    this.#value ??= { json: this.#end() };
    return this.#value.json;
  }

  push(slice: Uint8Array): void {
    if (this.#reader !== undefined && this.#bytes < HEAD_BYTES) {
      this.#head.push(slice.subarray(0, HEAD_BYTES - this.#bytes));
    }
    this.#bytes += slice.length;
    // What is wrong is told to the handler that asks for the value; others read no JSON.
    if (this.#fault !== undefined) return;
    try {
      this.#reader?.push(slice);
    } catch (error) {
      this.#fault = error;
    }
  }

  #end(): unknown {
    if (this.#fault !== undefined) throw badRequest(this.#fault);
    if (this.#reader === undefined || this.#bytes === 0) {
      throw new RequestError('bad_request', 'The request has no body; a JSON object is expected.');
    }
    try {
      return this.#reader.end();
    } catch (error) {
      throw badRequest(error);
    }
  }
}

interface ReadOptions {
  readonly keep: boolean;
  readonly takeTurn: TakeTurn;
  /** For the memory of what is kept; given back at once where that is nothing. */
  readonly lease: BodyLease;
}

/** @throws what the pieces throw, and what the lease refuses */
export async function readBody(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { keep, takeTurn, lease }: ReadOptions,
): Promise<RequestBody> {
  const body = new RequestBody({ keep });
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      const slice = piece.subarray(at, at + SLICE_BYTES);
      if (body.isKept) await lease.take(slice.length);
      if (body.isKept && body.bytes + piece.length > SHORT_BYTES) await takeTurn();
      body.push(slice);
      if (!body.isKept) lease.release();
    }
  }
  return body;
}

function badRequest(error: unknown): Error {
  if (error instanceof JsonError) return new RequestError('bad_request', `The body ${error.message}.`);
  return new TypeError('a body could not be read', { cause: error });
}
