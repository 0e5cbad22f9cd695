/** A gateway's own connection: whom it lets in, and the streams that its clients opened. */
import { randomBytes } from 'node:crypto';
import type { Claim, Holder, Send, ToClient, ToGateway } from './directory.ts';
import { FairRate } from './fair-rate.ts';
import { FairShare, type GroupPath } from './fair-share.ts';
import { GatewayClient, type ClientHost } from './gateway-client.ts';
import { ReceiveWindow } from './receive-window.ts';
import { SendScheduler } from './send-scheduler.ts';
import type { RelayContext } from './relay-context.ts';
import { decodeAfterKeepAlive, type PeerRole, type RelayPeer } from './relay-peer.ts';
import { RelayedStream, type GatewayEnd } from './relayed-stream.ts';
import { TagList } from './tag-list.ts';
import { RELAY_CODE, RelayError } from './wire/codes.ts';
import { CONNECTION_TAG_BYTES, dataStream, HEADER_BYTES, hasEnd, type Frame } from './wire/frame.ts';

type Attach = Extract<ToGateway, { readonly type: 'attach' }>;

const LAST_STREAM = 0xffff_ffff;
/** No tag. */
const NOBODY = '';

export class GatewaySide implements PeerRole, Holder, ClientHost, GatewayEnd {
  readonly peer: RelayPeer;
  readonly scheduler: SendScheduler;
  readonly streams = new Map<number, RelayedStream>();
  readonly places = new FairShare<RelayedStream>();
  readonly #claim: Claim;
  readonly #context: RelayContext;
  /** Of this gateway's clients, by their tags. */
  readonly #rate: FairRate;
  readonly #receiveWindow: ReceiveWindow;
  readonly #tags: TagList;
  readonly #clients = new FairShare<GatewayClient>();
  #lastId = 0;

  constructor(peer: RelayPeer, context: RelayContext, claim: Claim) {
    const { limits, elapsedMs, now } = context;
    this.peer = peer;
    this.#claim = claim;
    this.#context = context;
    this.scheduler = new SendScheduler(peer, context);
    this.#rate = new FairRate({ perSecond: limits.bytesPerSecond, burst: limits.burstBytes, elapsedMs });
    // Of what belongs to no stream: all else is its client's share, and slows down that one.
    const share = this.#rate.of(NOBODY);
    this.#receiveWindow = new ReceiveWindow(peer, { share, window: limits.connectionWindowBytes });
    this.#tags = new TagList({ limit: limits.tagsPerGateway, now });
  }

  get routingId(): string {
    return this.#claim.routingId;
  }

  replaced(): void {
    this.#context.metrics.tally.takeovers += 1;
    this.peer.sendGoaway(RELAY_CODE.replaced);
  }

  link(toClient: Send<ToClient>): Send<ToGateway> {
    let client: GatewayClient | undefined;
    return (message) => {
      if (message.type === 'attach') client ??= this.#attach(message, toClient);
      else client?.take(message);
    };
  }

  detach(client: GatewayClient): void {
    this.#clients.delete(client);
  }

  openStream(client: GatewayClient, { id, op }: { readonly id: number; readonly op: number }): void {
    const code = this.#refusalOf(client);
    if (code !== undefined) {
      client.peer.send({ type: 'reset', stream: id, code });
      return;
    }
    this.#lastId += 1;
    this.peer.send({ type: 'open', stream: this.#lastId, op, connectionTag: client.connectionTag });
    const ends = { client, clientId: id, gateway: this, gatewayId: this.#lastId };
    void new RelayedStream(ends, this.#context);
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
    for (const client of this.#clients.holders()) client.keepAlive();
  }

  gone(code: number): void {
    this.#context.directory.release(this.#claim);
    this.#receiveWindow.close();
    for (const stream of this.streams.values()) stream.resetClient(RELAY_CODE.offline);
    for (const client of this.#clients.holders()) client.refuse(RELAY_CODE.offline);
    this.scheduler.close();
    this.#context.metrics.tally.gateways -= 1;
    const { bytesIn, bytesOut } = this.peer;
    this.#context.log({ event: 'gateway gone', route: this.routingId.slice(0, 4), code, bytesIn, bytesOut });
  }

  #refusalOf({ grant, path, share }: GatewayClient): number | undefined {
    if (this.#tags.findKey(grant.key) === undefined) return RELAY_CODE.notAllowed;
    if (this.#context.quota.isUsedUp({ routingId: this.routingId, tag: grant.key })) return RELAY_CODE.quota;
    // Each new stream has a window that nothing holds back.
    if (share.isExhausted()) return RELAY_CODE.rate;
    if (this.#lastId >= LAST_STREAM) return RELAY_CODE.draining;
    return this.#makeRoom(path) ? undefined : RELAY_CODE.tooMany;
  }

  /**
   * Without a tag that counts nobody learns whether the gateway is there: it is away, whatever the reason.
   * @returns nobody if it was refused
   */
  #attach({ tag, address }: Attach, toClient: Send<ToClient>): GatewayClient | undefined {
    // It may have gone while it was looked for.
    const grant = this.peer.isGone ? undefined : this.#tags.find(tag);
    const code = grant === undefined ? RELAY_CODE.offline : this.#makePlace([address, grant.key]);
    if (grant === undefined || code !== undefined) {
      toClient({ type: 'detach', code: code ?? RELAY_CODE.offline });
      return undefined;
    }
    const connectionTag = new Uint8Array(randomBytes(CONNECTION_TAG_BYTES));
    const share = this.#rate.of(grant.key);
    const options = { host: this, grant, address, connectionTag, share, toClient };
    const client = new GatewayClient(this.#context, options);
    this.#clients.add(client, client.path);
    toClient({ type: 'attached', terms: client.terms });
    return client;
  }

  /** For a client. @returns the code of a refusal */
  #makePlace(path: GroupPath): number | undefined {
    if (this.#clients.size < this.#context.limits.connectionsPerGateway) return undefined;
    const crowding = this.#clients.findCrowding(path);
    crowding?.holder.refuse(RELAY_CODE.tooMany);
    return crowding === undefined ? RELAY_CODE.tooMany : undefined;
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
    if (!this.#receiveWindow.arrived(length, stream?.share)) throw new RelayError(RELAY_CODE.flow);
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
      client.refuse(RELAY_CODE.revoked);
    }
  }

  /** `undefined` for one that is over, of which frames may still be on their way. */
  #find(id: number): RelayedStream | undefined {
    if (id > this.#lastId) throw new RelayError(RELAY_CODE.protocol);
    return this.streams.get(id);
  }
}
