/** A gateway's own connection: whom it lets in, and the streams that its clients opened. */
import type { ClientSide } from './client-side.ts';
import type { HeldGateway } from './directory.ts';
import { FairRate } from './fair-rate.ts';
import { FairShare, type GroupPath } from './fair-share.ts';
import { ReceiveWindow } from './receive-window.ts';
import { SendScheduler } from './send-scheduler.ts';
import type { RelayContext } from './relay-context.ts';
import { decodeAfterKeepAlive, type PeerRole, type RelayPeer } from './relay-peer.ts';
import { RelayedStream, type GatewayEnd } from './relayed-stream.ts';
import { TagList, type TagGrant } from './tag-list.ts';
import { RELAY_CODE, RelayError } from './wire/codes.ts';
import { dataStream, HEADER_BYTES, hasEnd, type Frame } from './wire/frame.ts';

const LAST_STREAM = 0xffff_ffff;
/** No tag. */
const NOBODY = '';

export class GatewaySide implements PeerRole, HeldGateway, GatewayEnd {
  readonly epoch: number;
  readonly routingId: string;
  readonly peer: RelayPeer;
  readonly scheduler: SendScheduler;
  readonly streams = new Map<number, RelayedStream>();
  readonly places = new FairShare<RelayedStream>();
  readonly rate: FairRate;
  readonly #context: RelayContext;
  readonly #meter: ReceiveWindow;
  readonly #tags: TagList;
  readonly #clients = new FairShare<ClientSide>();
  #lastId = 0;

  constructor(peer: RelayPeer, context: RelayContext, { routingId, epoch }: { routingId: string; epoch: number }) {
    const { limits, elapsedMs, now } = context;
    this.peer = peer;
    this.epoch = epoch;
    this.routingId = routingId;
    this.#context = context;
    this.scheduler = new SendScheduler(peer, context);
    this.rate = new FairRate({ perSecond: limits.bytesPerSecond, burst: limits.burstBytes, elapsedMs });
    // Of what belongs to no stream: all else is its client's share, and slows down that one.
    this.#meter = new ReceiveWindow(peer, { share: this.rate.of(NOBODY), window: limits.connectionWindowBytes });
    this.#tags = new TagList({ limit: limits.tagsPerGateway, now });
  }

  replace(): void {
    this.#context.metrics.tally.takeovers += 1;
    this.peer.sendGoaway(RELAY_CODE.replaced);
  }

  findTag(tag: Uint8Array): TagGrant | undefined {
    return this.#tags.find(tag);
  }

  attach(client: ClientSide): void {
    // It may have gone while it was looked for.
    if (this.peer.isGone) return client.peer.refuse(RELAY_CODE.offline);
    if (this.#clients.size >= this.#context.limits.connectionsPerGateway) {
      const crowding = this.#clients.findCrowding(client.path);
      if (crowding === undefined) return client.peer.refuse(RELAY_CODE.tooMany);
      crowding.holder.peer.refuse(RELAY_CODE.tooMany);
    }
    this.#clients.add(client, client.path);
  }

  detach(client: ClientSide): void {
    this.#clients.delete(client);
  }

  openStream(client: ClientSide, { id, op }: { readonly id: number; readonly op: number }): boolean {
    const code = this.#refusalOf(client);
    if (code !== undefined) {
      client.peer.send({ type: 'reset', stream: id, code });
      return false;
    }
    this.#lastId += 1;
    this.peer.send({ type: 'open', stream: this.#lastId, op, connectionTag: client.connectionTag });
    const ends = { client, clientId: id, gateway: this, gatewayId: this.#lastId };
    void new RelayedStream(ends, this.#context);
    return true;
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
    this.#context.directory.release(this.routingId, this);
    this.#meter.close();
    for (const stream of this.streams.values()) stream.resetClient(RELAY_CODE.offline);
    for (const client of this.#clients.holders()) client.peer.refuse(RELAY_CODE.offline);
    this.scheduler.close();
    this.#context.metrics.tally.gateways -= 1;
    const { bytesIn, bytesOut } = this.peer;
    this.#context.log({ event: 'gateway gone', route: this.routingId.slice(0, 4), code, bytesIn, bytesOut });
  }

  #refusalOf({ grant, path, share }: ClientSide): number | undefined {
    if (this.#tags.findKey(grant.key) === undefined) return RELAY_CODE.notAllowed;
    if (this.#context.quota.isUsedUp({ routingId: this.routingId, tag: grant.key })) return RELAY_CODE.quota;
    // Each new stream has a window that nothing holds back.
    if (share.isExhausted()) return RELAY_CODE.rate;
    if (this.#lastId >= LAST_STREAM) return RELAY_CODE.draining;
    return this.#makeRoom(path) ? undefined : RELAY_CODE.tooMany;
  }

  /** For a stream. @returns false if whoever wants it holds as many as any */
  #makeRoom(path: GroupPath): boolean {
    if (this.places.size < this.#context.limits.streamsPerGateway) return true;
    const crowding = this.places.findCrowding(path);
    if (crowding === undefined || crowding.isOwn) return false;
    crowding.holder.reset(RELAY_CODE.tooMany);
    return true;
  }

  #accept(frame: Frame): void {
    switch (frame.type) {
      case 'allow':
        if (!this.#tags.allow(frame.allowances)) this.peer.send({ type: 'error', code: RELAY_CODE.tooMany });
        return;
      case 'deny':
        return this.#deny(frame.tags);
      case 'window':
        if (frame.stream === 0) this.scheduler.grant(frame.credit);
        else this.#find(frame.stream)?.grant('up', frame.credit);
        return;
      case 'reset':
        this.#find(frame.stream)?.resetClient(frame.code);
        return;
      default:
        throw new RelayError(RELAY_CODE.protocol);
    }
  }

  #data(id: number, message: Buffer): void {
    const length = message.length - HEADER_BYTES;
    const stream = this.#find(id);
    if (!this.#meter.arrived(length, stream?.share)) throw new RelayError(RELAY_CODE.flow);
    const { quota } = this.#context;
    const user = { routingId: this.routingId, tag: stream?.tag ?? NOBODY };
    quota.spend(user, length);
    if (stream !== undefined && quota.isUsedUp(user)) stream.reset(RELAY_CODE.quota);
    else stream?.pass('down', message, hasEnd(message));
  }

  /** Nothing more of those clients comes through, from this moment on. */
  #deny(tags: readonly Uint8Array[]): void {
    const denied = this.#tags.deny(tags);
    for (const client of this.#clients.holders()) {
      if (!denied.has(client.grant.key)) continue;
      for (const stream of client.streams.values()) stream.reset(RELAY_CODE.revoked);
      client.peer.refuse(RELAY_CODE.revoked);
    }
  }

  /** `undefined` for one that is over, of which frames may still be on their way. */
  #find(id: number): RelayedStream | undefined {
    if (id > this.#lastId) throw new RelayError(RELAY_CODE.protocol);
    return this.streams.get(id);
  }
}
