/**
 * One stream through the relay, as two flows of bytes that it can't read. The ends grant each other credit for a stream,
 * and the relay passes that on; it holds both to it. So what it has to keep for a reader that does not read is bounded
 * by the stream's window, whoever lies.
 */
import type { RateShare } from './fair-rate.ts';
import type { FairShare, GroupPath } from './fair-share.ts';
import type { RelayContext } from './relay-context.ts';
import type { Flow, FrameSender, Pausable, SendScheduler } from './send-scheduler.ts';
import { ByteQueue } from './wire/byte-queue.ts';
import { RELAY_CODE } from './wire/codes.ts';
import { HEADER_BYTES } from './wire/frame.ts';
import type { TagGrant } from './tag-list.ts';

/** One end, as a stream sees it. */
export interface StreamSide {
  readonly peer: FrameSender;
  readonly scheduler: SendScheduler;
  readonly streams: Map<number, RelayedStream>;
}

/** The end that opened it, to whom it is counted. */
export interface ClientEnd extends StreamSide {
  readonly peer: FrameSender & Pausable;
  readonly grant: TagGrant;
  /** By which places are shared. */
  readonly path: GroupPath;
  readonly share: RateShare;
}

export interface GatewayEnd extends StreamSide {
  /** Its streams, by who has how many. */
  readonly places: FairShare<RelayedStream>;
}

/** One direction. */
interface CreditedFlow extends Flow {
  readonly target: StreamSide;
  /** What the sender may still send. */
  credit: number;
  /** What the receiver has granted beside that, and the sender is not told yet. */
  heldCredit: number;
}

type FlowName = 'up' | 'down';

interface Ends {
  readonly client: ClientEnd;
  readonly clientId: number;
  readonly gateway: GatewayEnd;
  readonly gatewayId: number;
}

export class RelayedStream {
  /** From the client to the gateway. */
  readonly up: CreditedFlow;
  readonly down: CreditedFlow;
  readonly #ends: Ends;
  readonly #context: RelayContext;
  #creditTimer: NodeJS.Timeout | undefined;

  constructor(ends: Ends, context: RelayContext) {
    this.#ends = ends;
    this.#context = context;
    this.up = this.#flow(ends.gateway, ends.gatewayId);
    this.down = this.#flow(ends.client, ends.clientId);
    ends.client.streams.set(ends.clientId, this);
    ends.gateway.streams.set(ends.gatewayId, this);
    ends.gateway.places.add(this, ends.client.path);
    context.metrics.tally.streams += 1;
  }

  get share(): RateShare {
    return this.#ends.client.share;
  }

  get tag(): string {
    return this.#ends.client.grant.key;
  }

  /** @param message a whole DATA frame, to be passed on as it is if there is nothing to wait for */
  pass(name: FlowName, message: Uint8Array, isEnd: boolean): void {
    const flow = this[name];
    const length = message.length - HEADER_BYTES;
    if (flow.isEndReceived || length > flow.credit) return this.reset(RELAY_CODE.flow);
    flow.credit -= length;
    flow.isEndReceived = isEnd;
    if (flow.target.scheduler.passOn(flow, message)) return;
    if (this.#context.held.bytes + length > this.#context.limits.heldBytes) return this.reset(RELAY_CODE.tooMany);
    flow.target.scheduler.hold(flow, message.subarray(HEADER_BYTES));
    // All that a client sends goes to one gateway; what a gateway sends to one slow client must not stop the others'.
    if (name === 'up') flow.target.scheduler.pauseUntilClear(this.#ends.client.peer);
  }

  /** The receiver of a flow takes more of it. What a gateway sends is slowed down by this; a client is as a whole. */
  grant(name: FlowName, credit: number): void {
    const flow = this[name];
    const granted = flow.credit + flow.heldCredit + flow.queue.length + credit;
    if (granted > this.#context.limits.streamWindowBytes) return this.reset(RELAY_CODE.flow);
    flow.heldCredit += credit;
    if (name === 'up') this.#passCredit(flow, this.#ends.client.peer, this.#ends.clientId);
    else this.#passCreditInTime();
  }

  /** Tells the gateway that it may send on, as soon as the client's share allows it. */
  #passCreditInTime(): void {
    if (this.#creditTimer !== undefined) return;
    const waitMs = this.share.waitMs();
    if (waitMs === 0) return this.#passCredit(this.down, this.#ends.gateway.peer, this.#ends.gatewayId);
    this.#creditTimer = setTimeout(() => {
      this.#creditTimer = undefined;
      this.#passCreditInTime();
    }, waitMs);
  }

  #passCredit(flow: CreditedFlow, sender: FrameSender, stream: number): void {
    const credit = flow.heldCredit;
    flow.heldCredit = 0;
    flow.credit += credit;
    if (!flow.isEndReceived) sender.send({ type: 'window', stream, credit });
  }

  /** Ends it, and says so to both. */
  reset(code: number): void {
    this.resetClient(code);
    this.#ends.gateway.peer.send({ type: 'reset', stream: this.#ends.gatewayId, code });
  }

  /** Ends it, and says so to the client: the gateway knows, or is gone. */
  resetClient(code: number): void {
    this.forget();
    this.#ends.client.peer.send({ type: 'reset', stream: this.#ends.clientId, code });
  }

  /** Ends it, and says so to the gateway. */
  resetGateway(code: number): void {
    this.forget();
    this.#ends.gateway.peer.send({ type: 'reset', stream: this.#ends.gatewayId, code });
  }

  forgetIfOver(): void {
    if (this.up.isEndSent && this.down.isEndSent) this.forget();
  }

  forget(): void {
    const { client, clientId, gateway, gatewayId } = this.#ends;
    if (!client.streams.delete(clientId)) return;
    clearTimeout(this.#creditTimer);
    gateway.streams.delete(gatewayId);
    gateway.places.delete(this);
    this.#context.metrics.tally.streams -= 1;
    gateway.scheduler.drop(this.up);
    client.scheduler.drop(this.down);
  }

  #flow(target: StreamSide, targetId: number): CreditedFlow {
    return {
      stream: this,
      target,
      targetId,
      queue: new ByteQueue(),
      credit: this.#context.limits.streamWindowBytes,
      heldCredit: 0,
      isEndReceived: false,
      isEndSent: false,
    };
  }
}
