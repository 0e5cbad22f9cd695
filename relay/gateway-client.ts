/**
 * A client as the node of its gateway knows it, wherever its socket is: a tag let it in, which says what it may open.
 */
import type { JoinTerms, Send, ToClient, ToGateway } from './directory.ts';
import type { RateShare } from './fair-rate.ts';
import type { GroupPath } from './fair-share.ts';
import { ReceiveWindow } from './receive-window.ts';
import type { RelayContext } from './relay-context.ts';
import type { ClientEnd, RelayedStream } from './relayed-stream.ts';
import { SendScheduler, type FrameSender, type Pausable } from './send-scheduler.ts';
import type { TagGrant } from './tag-list.ts';
import { TokenBucket } from './token-bucket.ts';
import { RELAY_CODE, RelayError } from './wire/codes.ts';
import { dataStream, decodeFrame, encodeFrame, HEADER_BYTES, hasEnd, type Frame, type TagClass } from './wire/frame.ts';
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

/** Its gateway. */
export interface ClientHost {
  readonly routingId: string;
  /** Begins a stream, or refuses it and tells the client. */
  openStream(client: GatewayClient, request: { readonly id: number; readonly op: number }): void;
  detach(client: GatewayClient): void;
}

export interface GatewayClientOptions {
  readonly host: ClientHost;
  readonly grant: TagGrant;
  /** Where it comes from; see `networkOf`. */
  readonly address: string;
  /** A name for this connection that the gateway learns: 8 random bytes. */
  readonly connectionTag: Uint8Array;
  /** Of its gateway's rate, with all other connections of its tag. */
  readonly share: RateShare;
  readonly toClient: Send<ToClient>;
}

export class GatewayClient implements ClientEnd {
  readonly peer: ClientSocket;
  readonly scheduler: SendScheduler;
  readonly streams = new Map<number, RelayedStream>();
  readonly grant: TagGrant;
  /** By which places are shared: its address, and its tag. */
  readonly path: GroupPath;
  readonly share: RateShare;
  readonly connectionTag: Uint8Array;
  readonly #host: ClientHost;
  readonly #context: RelayContext;
  readonly #toClient: Send<ToClient>;
  readonly #receiveWindow: ReceiveWindow;
  readonly #handshakes: TokenBucket;
  #lastId = 0;

  constructor(context: RelayContext, { host, grant, address, connectionTag, share, toClient }: GatewayClientOptions) {
    const { limits, elapsedMs } = context;
    this.peer = new ClientSocket(toClient);
    this.grant = grant;
    this.path = [address, grant.key];
    this.share = share;
    this.connectionTag = connectionTag;
    this.#host = host;
    this.#context = context;
    this.#toClient = toClient;
    this.scheduler = new SendScheduler(this.peer, context);
    this.#receiveWindow = new ReceiveWindow(this.peer, { share, window: limits.connectionWindowBytes });
    const perSecond = limits.handshakesPerSecond;
    this.#handshakes = new TokenBucket({ perSecond, burst: 2 * perSecond, elapsedMs });
  }

  get terms(): JoinTerms {
    const { connectionWindowBytes, streamWindowBytes, bytesPerSecond } = this.#context.limits;
    const windows = { connectionWindow: connectionWindowBytes, streamWindow: streamWindowBytes };
    return { ...windows, maxStreams: this.#maxStreams, bytesPerSecond };
  }

  /** What its node says of it. */
  take(message: Exclude<ToGateway, { readonly type: 'attach' }>): void {
    if (this.peer.isGone) return;
    switch (message.type) {
      case 'frame':
        return this.#receive(message.bytes);
      case 'full':
        this.peer.isClear = false;
        return;
      case 'clear':
        this.peer.isClear = true;
        return this.scheduler.flush();
      default:
        this.#end();
    }
  }

  /** Has it told why, and sent away. */
  refuse(code: number): void {
    if (this.peer.isGone) return;
    this.#end();
    this.#toClient({ type: 'detach', code });
  }

  /** Once a second. */
  keepAlive(): void {
    this.scheduler.endStalled();
  }

  get #maxStreams(): number {
    const { streamsPerConnection, streamsWhilePairing } = this.#context.limits;
    return this.grant.tagClass === 'device' ? streamsPerConnection : streamsWhilePairing;
  }

  #end(): void {
    this.peer.isGone = true;
    this.#receiveWindow.close();
    for (const stream of this.streams.values()) stream.resetGateway(RELAY_CODE.offline);
    this.#host.detach(this);
    this.scheduler.close();
  }

  #receive(bytes: Uint8Array): void {
    try {
      const stream = dataStream(bytes);
      if (stream > 0) this.#data(stream, bytes);
      else this.#accept(decodeFrame(bytes));
    } catch (error) {
      if (!(error instanceof RelayError)) this.#context.log({ event: 'failed', code: RELAY_CODE.internal, error });
      this.refuse(error instanceof RelayError ? error.code : RELAY_CODE.internal);
    }
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
    if (code === undefined) this.#host.openStream(this, { id, op });
    else this.peer.send({ type: 'reset', stream: id, code });
  }

  #refusalOf(op: number): number | undefined {
    const ops = OPS_OF[this.grant.tagClass];
    if (ops?.has(op) === false) return RELAY_CODE.notAllowed;
    if (this.streams.size >= this.#maxStreams) return RELAY_CODE.tooMany;
    if (HANDSHAKE_OPS.has(op) && !this.#handshakes.take(1)) return RELAY_CODE.rate;
    return undefined;
  }

  #data(id: number, bytes: Uint8Array): void {
    const { quota } = this.#context;
    const user = { routingId: this.#host.routingId, tag: this.grant.key };
    const length = bytes.length - HEADER_BYTES;
    if (!this.#receiveWindow.arrived(length)) throw new RelayError(RELAY_CODE.flow);
    quota.spend(user, length);
    const stream = this.#find(id);
    if (stream !== undefined && quota.isUsedUp(user)) stream.reset(RELAY_CODE.quota);
    else stream?.pass('up', bytes, hasEnd(bytes));
  }

  /** `undefined` for one that has ended, of which frames may still be on their way. */
  #find(id: number): RelayedStream | undefined {
    if (id > this.#lastId) throw new RelayError(RELAY_CODE.protocol);
    return this.streams.get(id);
  }
}

/** The client's socket, as its gateway's node knows it. */
class ClientSocket implements FrameSender, Pausable {
  isClear = true;
  isGone = false;
  readonly #toClient: Send<ToClient>;

  constructor(toClient: Send<ToClient>) {
    this.#toClient = toClient;
  }

  send(frame: Frame): void {
    this.sendBytes(encodeFrame(frame));
  }

  sendBytes(bytes: Uint8Array): void {
    if (!this.isGone) this.#toClient({ type: 'frame', bytes });
  }

  pause(): void {
    if (!this.isGone) this.#toClient({ type: 'pause' });
  }

  resume(): void {
    if (!this.isGone) this.#toClient({ type: 'resume' });
  }
}
