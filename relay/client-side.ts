/** A client's connection: a tag let it in, which says what it may open. */
import type { HeldGateway } from './directory.ts';
import type { FairRate, RateShare } from './fair-rate.ts';
import type { GroupPath } from './fair-share.ts';
import { ReceiveWindow } from './receive-window.ts';
import { SendScheduler } from './send-scheduler.ts';
import type { RelayContext } from './relay-context.ts';
import { decodeAfterKeepAlive, type PeerRole, type RelayPeer } from './relay-peer.ts';
import type { ClientEnd, RelayedStream } from './relayed-stream.ts';
import type { TagGrant } from './tag-list.ts';
import { TokenBucket } from './token-bucket.ts';
import { RELAY_CODE, RelayError } from './wire/codes.ts';
import { dataStream, HEADER_BYTES, hasEnd, type Frame, type TagClass } from './wire/frame.ts';
import { OP } from './wire/op.ts';

/** Each costs the gateway a handshake. */
const HANDSHAKE_OPS: ReadonlySet<number> = new Set([OP.session, OP.invite, OP.discoveryOpen, OP.discoveryProve]);

/** What a tag opens; a device's tag opens anything, and the gateway decides. */
const OPS_OF: Readonly<Record<TagClass, ReadonlySet<number> | undefined>> = {
  device: undefined,
  // Pairing ends with a call, `/pair/confirm`: the relay can't tell it from others, the gateway can.
  pairing: new Set([OP.invite, OP.discoveryOpen, OP.discoveryProve, OP.call]),
  probe: new Set([OP.probe]),
};

export interface JoinedAs {
  readonly gateway: HeldGateway;
  readonly grant: TagGrant;
  readonly routingId: string;
  /** Where it comes from; see `networkOf`. */
  readonly address: string;
  /** A name for this connection that the gateway learns: 8 random bytes. */
  readonly connectionTag: Uint8Array;
  /** Of the gateway's clients, by their tags. */
  readonly rate: FairRate;
}

export class ClientSide implements PeerRole, ClientEnd {
  readonly peer: RelayPeer;
  readonly scheduler: SendScheduler;
  readonly streams = new Map<number, RelayedStream>();
  readonly grant: TagGrant;
  /** By which places are shared: its address, and its tag. */
  readonly path: GroupPath;
  /** Of its gateway's rate, with all other connections of its tag. */
  readonly share: RateShare;
  readonly connectionTag: Uint8Array;
  readonly #joined: JoinedAs;
  readonly #context: RelayContext;
  readonly #meter: ReceiveWindow;
  readonly #handshakes: TokenBucket;
  #lastId = 0;

  constructor(peer: RelayPeer, context: RelayContext, joined: JoinedAs) {
    const { limits, elapsedMs } = context;
    this.peer = peer;
    this.grant = joined.grant;
    this.path = [joined.address, joined.grant.key];
    this.share = joined.rate.of(joined.grant.key);
    this.connectionTag = joined.connectionTag;
    this.#joined = joined;
    this.#context = context;
    this.scheduler = new SendScheduler(peer, context);
    this.#meter = new ReceiveWindow(peer, { share: this.share, window: limits.connectionWindowBytes });
    const perSecond = limits.handshakesPerSecond;
    this.#handshakes = new TokenBucket({ perSecond, burst: 2 * perSecond, elapsedMs });
  }

  get maxStreams(): number {
    const { streamsPerConnection, streamsWhilePairing } = this.#context.limits;
    return this.grant.tagClass === 'device' ? streamsPerConnection : streamsWhilePairing;
  }

  receive(message: Buffer): void {
    const stream = dataStream(message);
    if (stream > 0) return this.#data(stream, message);
    const frame = decodeAfterKeepAlive(this.peer, message);
    if (frame !== undefined) this.#accept(frame);
  }

  clear(): void {
    this.scheduler.flush();
  }

  keepAlive(): void {
    this.scheduler.endStalled();
  }

  gone(code: number): void {
    const { gateway, routingId } = this.#joined;
    this.#meter.close();
    for (const stream of this.streams.values()) stream.resetGateway(RELAY_CODE.offline);
    gateway.detach(this);
    this.scheduler.close();
    this.#context.metrics.tally.clients -= 1;
    const { bytesIn, bytesOut } = this.peer;
    this.#context.log({ event: 'client gone', route: routingId.slice(0, 4), code, bytesIn, bytesOut });
  }

  #accept(frame: Frame): void {
    switch (frame.type) {
      case 'open':
        if (frame.connectionTag !== undefined || frame.stream <= this.#lastId) break;
        return this.#open(frame.stream, frame.op);
      case 'window':
        if (frame.stream === 0) this.scheduler.grant(frame.credit);
        else this.#find(frame.stream)?.grant('down', frame.credit);
        return;
      case 'reset':
        this.#find(frame.stream)?.resetGateway(frame.code);
        return;
      default:
        break;
    }
    throw new RelayError(RELAY_CODE.protocol);
  }

  #open(id: number, op: number): void {
    this.#lastId = id;
    const code = this.#refusalOf(op);
    if (code === undefined) this.#joined.gateway.openStream(this, { id, op });
    else this.peer.send({ type: 'reset', stream: id, code });
  }

  #refusalOf(op: number): number | undefined {
    const ops = OPS_OF[this.grant.tagClass];
    if (ops?.has(op) === false) return RELAY_CODE.notAllowed;
    if (this.streams.size >= this.maxStreams) return RELAY_CODE.tooMany;
    if (HANDSHAKE_OPS.has(op) && !this.#handshakes.take(1)) return RELAY_CODE.rate;
    return undefined;
  }

  #data(id: number, message: Buffer): void {
    const { quota } = this.#context;
    const user = { routingId: this.#joined.routingId, tag: this.grant.key };
    const length = message.length - HEADER_BYTES;
    if (!this.#meter.arrived(length)) throw new RelayError(RELAY_CODE.flow);
    quota.spend(user, length);
    const stream = this.#find(id);
    if (stream !== undefined && quota.isUsedUp(user)) stream.reset(RELAY_CODE.quota);
    else stream?.pass('up', message, hasEnd(message));
  }

  /** `undefined` for one that is over, of which frames may still be on their way. */
  #find(id: number): RelayedStream | undefined {
    if (id > this.#lastId) throw new RelayError(RELAY_CODE.protocol);
    return this.streams.get(id);
  }
}
