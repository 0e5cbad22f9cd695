/**
 * The request inside a sealed call, as its records open: head and body, whole before anything is done with it. What
 * cannot be taken is noted and the rest of it let go, so that the refusal can be sealed like any other answer.
 */
import type { Hash } from 'node:crypto';
import { decodeCallHead, type CallHead } from '../../channel/head.ts';
import type { CallEvent } from '../../channel/received-call.ts';
import { RequestError } from '../errors.ts';
import type { BodyBudget } from './body-budget.ts';
import { BodyBuffer } from './body-buffer.ts';
import { startRequestHash } from './idempotency.ts';
import { allowedHeaders } from './inner-request.ts';

interface RequestLimits {
  /** Under which the budget counts. */
  readonly device: string;
  readonly budget: BodyBudget;
  /** What the route takes that a head asks for. */
  readonly maxBodyBytes: (head: CallHead) => number;
}

export class SealedRequest {
  readonly head: CallHead;
  readonly #limits: RequestLimits;
  readonly #maxBytes: number;
  readonly #body: BodyBuffer;
  /** Of one that asks for something: `idempotency.ts` tells it from others by this. */
  readonly #hash: Hash | undefined;
  #bytes = 0;
  #refusal: RequestError | undefined;
  #state: 'open' | 'whole' | 'given up' = 'open';

  /** @throws ChannelError `malformed` */
  constructor(headData: Uint8Array, limits: RequestLimits) {
    this.head = decodeCallHead(headData);
    this.#limits = limits;
    this.#body = new BodyBuffer((bytes) => limits.budget.reserve(limits.device, bytes));
    const { head } = this;
    this.#hash = head.kind === 'request' ? startRequestHash(head.head, allowedHeaders(head.head.headers)) : undefined;
    this.#maxBytes = limits.maxBodyBytes(head);
    if ((this.#declaredBytes ?? 0) > this.#maxBytes) this.#refuse(tooLarge(this.#maxBytes));
  }

  /** Only a whole one is acted on. */
  get isWhole(): boolean {
    return this.#state === 'whole';
  }

  take(event: Exclude<CallEvent, { readonly type: 'head' }>): void {
    if (event.type === 'data') this.#takeData(event.data);
    else if (event.type === 'abort') this.#giveUp();
    else this.#finish();
  }

  /** In the order in which it came. @throws {RequestError} where the body was not to be taken */
  body(): readonly Uint8Array[] {
    if (this.#refusal !== undefined) throw this.#refusal;
    return this.#body.pieces();
  }

  /** Once, of a whole request. */
  digest(): Uint8Array {
    if (this.#hash === undefined) throw new TypeError('this asks for nothing');
    return this.#hash.digest();
  }

  /** Lets go of the body. */
  release(): void {
    this.#limits.budget.release(this.#limits.device, this.#body.clear());
  }

  get #declaredBytes(): number | null {
    return this.head.kind === 'request' ? this.head.head.bodyBytes : null;
  }

  #takeData(data: Uint8Array): void {
    this.#bytes += data.length;
    if (this.#refusal !== undefined) return;
    if (this.#bytes > this.#maxBytes) return this.#refuse(tooLarge(this.#maxBytes));
    if (this.#body.append(data)) this.#hash?.update(data);
    else this.#refuse(tooMuch());
  }

  #finish(): void {
    this.#state = 'whole';
    const declared = this.#declaredBytes;
    if (declared === null || declared === this.#bytes) return;
    this.#refuse(new RequestError('bad_request', `The head says ${declared} bytes of body, but ${this.#bytes} came.`));
  }

  #giveUp(): void {
    this.#state = 'given up';
    this.release();
  }

  #refuse(refusal: RequestError): void {
    this.#refusal ??= refusal;
    this.release();
  }
}

function tooLarge(maxBytes: number): RequestError {
  return new RequestError(
    'body_too_large',
    `The body is larger than the ${maxBytes} bytes that this route takes here.`,
  );
}

function tooMuch(): RequestError {
  return new RequestError(
    'rate_limited',
    'This device has too much on its way already. Try again when some of it is done.',
  );
}
