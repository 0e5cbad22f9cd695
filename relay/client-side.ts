/**
 * A client's connection at the node that it came to: passes its frames to the node of its gateway, and what comes from
 * there to its socket. What it may do is decided there.
 */
import type { JoinTerms, Send, ToClient, ToGateway } from './directory.ts';
import type { RelayContext } from './relay-context.ts';
import { decodeAfterKeepAlive, type PeerRole, type RelayPeer } from './relay-peer.ts';
import { dataStream } from './wire/frame.ts';

/** What its gateway's node says: what the client may do, or the code of a refusal. */
export type JoinAnswer = JoinTerms | number;

export class ClientSide implements PeerRole {
  readonly #peer: RelayPeer;
  readonly #context: RelayContext;
  readonly #routingId: string;
  #send: Send<ToGateway> = ignore;
  /** Until it is answered. */
  #onAnswer: Send<JoinAnswer> | undefined;

  constructor(peer: RelayPeer, context: RelayContext, routingId: string) {
    this.#peer = peer;
    this.#context = context;
    this.#routingId = routingId;
  }

  /** Done once, before it is its peer's role. */
  async attach(request: { readonly tag: Uint8Array; readonly address: string }): Promise<JoinAnswer> {
    const { promise, resolve } = Promise.withResolvers<JoinAnswer>();
    this.#onAnswer = resolve;
    this.#send = await this.#context.directory.link(this.#routingId, (message) => this.#take(message));
    this.#send({ type: 'attach', ...request });
    return promise;
  }

  /** For one that is gone before it has joined. */
  detach(): void {
    this.#send({ type: 'detach' });
    this.#send = ignore;
  }

  receive(message: Buffer): void {
    // What is malformed goes no further.
    if (dataStream(message) > 0 || decodeAfterKeepAlive(this.#peer, message) !== undefined)
      this.#send({ type: 'frame', bytes: message });
  }

  clear(): void {
    this.#send({ type: 'clear' });
  }

  gone(code: number): void {
    this.detach();
    this.#context.metrics.tally.clients -= 1;
    const { bytesIn, bytesOut } = this.#peer;
    this.#context.log({ event: 'client gone', route: this.#routingId.slice(0, 4), code, bytesIn, bytesOut });
  }

  #take(message: ToClient): void {
    switch (message.type) {
      case 'attached':
        return this.#answer(message.terms);
      case 'frame':
        this.#peer.sendBytes(message.bytes);
        if (!this.#peer.isClear) this.#send({ type: 'full' });

        return;
      case 'pause':
        return this.#peer.pause();
      case 'resume':
        return this.#peer.resume();
      default:
        this.#send = ignore;
        if (this.#onAnswer === undefined) this.#peer.refuse(message.code);
        else this.#answer(message.code);
    }
  }

  #answer(answer: JoinAnswer): void {
    this.#onAnswer?.(answer);
    this.#onAnswer = undefined;
  }
}

function ignore(): void {
  // Nobody is there any more.
}
