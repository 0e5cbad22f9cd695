/**
 * A relay that lies. It stands between gateways, their devices and a real relay, reads every frame, and does with each
 * what the test's misdeed says; `misdeeds.ts` has some. It has in its hands what a relay's operator has, and no key.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import { decodeFrame, encodeFrame, MAX_FRAME_BYTES, SUBPROTOCOL, type Frame } from '../../relay/wire/frame.ts';

export type Role = 'unauthenticated' | 'gateway' | 'client' | 'probe';

/** A frame on its way: from whoever dialled, or from the real relay. */
export interface Passing {
  readonly link: Link;
  readonly from: 'peer' | 'relay';
  readonly frame: Frame;
}

/** What goes on in place of a frame: it alone, others, or nothing. Called for each frame in its turn. */
export type Misdeed = (passing: Passing) => readonly Frame[];

export const HONEST: Misdeed = ({ frame }) => [frame];

/** What a client's stream said, in the order in which the client and the real relay said it. */
export interface HeardStream {
  readonly link: Link;
  readonly stream: number;
  readonly op: number;
  readonly asked: Uint8Array[];
  readonly answered: Uint8Array[];
}

export interface HostileRelay {
  /** Also its origin, which the real relay has to be given. */
  readonly url: string;
  /** Of the real relay; without one whoever dials is turned away. */
  behind: string | undefined;
  misdeed: Misdeed;
  /** Those that are open, the oldest first. */
  readonly links: ReadonlySet<Link>;
  readonly heard: readonly HeardStream[];
  /** All messages, as they came. */
  readonly messages: readonly Buffer[];
  /** A number that grows with all that happens. */
  moved(): number;
  /** Forgets what it has heard. */
  forget(): void;
  close(): Promise<void>;
}

/** A stream that it opened itself. */
export interface OwnStream {
  send(bytes: Uint8Array): void;
  end(): void;
  /** What came back when it ended, or the code of the reset. */
  readonly outcome: Promise<Buffer | number>;
}

export async function startHostileRelay(): Promise<HostileRelay> {
  const relay = new Hostile();
  await relay.listen();
  return relay;
}

class Hostile implements HostileRelay {
  behind: string | undefined;
  misdeed: Misdeed = HONEST;
  readonly links = new Set<Link>();
  heard: HeardStream[] = [];
  messages: Buffer[] = [];
  /** Classes of tags, as the gateways gave them. */
  readonly probeTags = new Set<string>();
  #moved = 0;
  readonly #server = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
  });

  async listen(): Promise<void> {
    this.#server.on('connection', (peer) => {
      if (this.behind === undefined) peer.terminate();
      else this.links.add(new Link(this, peer, new WebSocket(this.behind, SUBPROTOCOL, { perMessageDeflate: false })));
    });
    await once(this.#server, 'listening');
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  moved(): number {
    return this.#moved;
  }

  note(message: Buffer): void {
    this.#moved += 1;
    this.messages.push(message);
  }

  forget(): void {
    this.heard = [];
    this.messages = [];
  }

  async close(): Promise<void> {
    for (const link of this.links) link.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** One connection to it, and its own to the real relay. */
export class Link {
  role: Role = 'unauthenticated';
  /** Of the gateway that registered, or is asked for; in hexadecimal. */
  routingId = '';
  /** The tags that a gateway lets in. */
  readonly tags: Uint8Array[] = [];
  readonly #hostile: Hostile;
  readonly #peer: WebSocket;
  readonly #relay: WebSocket;
  readonly #streams = new Map<number, HeardStream>();
  readonly #ops = new Map<number, number>();
  /** A gateway's streams: the real relay's number for each, and the one that the gateway is told. */
  readonly #toPeer = new Map<number, number>();
  readonly #toRelay = new Map<number, number>();
  readonly #own = new Map<number, (frame: Frame) => void>();
  #lastStream = 0;

  constructor(hostile: Hostile, peer: WebSocket, relay: WebSocket) {
    this.#hostile = hostile;
    this.#peer = peer;
    this.#relay = relay;
    peer.on('message', (data: Buffer) => this.#fromPeer(data));
    relay.on('message', (data: Buffer) => this.#fromRelay(data));
    for (const socket of [peer, relay]) socket.on('error', () => this.cut()).on('close', () => this.cut());
  }

  /** What a stream was opened for. */
  opOf(stream: number): number | undefined {
    return this.#ops.get(stream);
  }

  /** Says something in the relay's name. */
  toPeer(message: Frame | Uint8Array): void {
    send(this.#peer, message);
  }

  /** Says something in the name of whoever dialled. */
  toRelay(message: Frame | Uint8Array): void {
    send(this.#relay, message);
  }

  cut(): void {
    this.#hostile.links.delete(this);
    for (const end of this.#own.values()) end({ type: 'error', code: 0 });
    this.#peer.terminate();
    this.#relay.terminate();
  }

  /** Opens a stream at a gateway by itself. */
  open(op: number, connectionTag: Uint8Array): OwnStream {
    this.#lastStream += 1;
    const stream = this.#lastStream;
    const pieces: Uint8Array[] = [];
    const outcome = new Promise<Buffer | number>((resolve) => {
      this.#own.set(stream, (frame) => {
        if (frame.type === 'data') {
          pieces.push(frame.bytes);
          for (const to of [0, stream]) this.#grant(to, frame.bytes.length);
        }
        if (frame.type === 'data' && !frame.isEnd) return;
        resolve(frame.type === 'reset' || frame.type === 'error' ? frame.code : Buffer.concat(pieces));
        this.#own.delete(stream);
      });
    });
    this.toPeer({ type: 'open', stream, op, connectionTag });
    return {
      send: (bytes) => this.toPeer({ type: 'data', stream, bytes, isEnd: false }),
      end: () => this.toPeer({ type: 'data', stream, bytes: new Uint8Array(0), isEnd: true }),
      outcome,
    };
  }

  #grant(stream: number, credit: number): void {
    if (credit > 0) this.toPeer({ type: 'window', stream, credit });
  }

  #fromPeer(data: Buffer): void {
    this.#hostile.note(data);
    const frame = decodeFrame(new Uint8Array(data));
    if ('stream' in frame && frame.type !== 'window') {
      const own = this.#own.get(frame.stream);
      if (own !== undefined) return own(frame);
    }
    const mapped = this.#mapped(frame, this.#toRelay);
    // Of a stream of its own, or of one that is over.
    if (mapped === undefined) return;
    this.#learn(mapped);
    this.#pass('peer', mapped);
  }

  #fromRelay(data: Buffer): void {
    this.#hostile.note(data);
    const frame = decodeFrame(new Uint8Array(data));
    if (frame.type === 'open') this.#ops.set(frame.stream, frame.op);
    if (frame.type === 'data') this.#streams.get(frame.stream)?.answered.push(frame.bytes);
    this.#pass('relay', frame);
  }

  #pass(from: Passing['from'], frame: Frame): void {
    for (const next of this.#hostile.misdeed({ link: this, from, frame })) this.forward(from, next);
  }

  /** Passes a frame on, as the real relay numbers its stream. */
  forward(from: Passing['from'], frame: Frame): void {
    if (from === 'peer') return this.toRelay(frame);
    if (this.role === 'gateway' && frame.type === 'open') {
      this.#lastStream += 1;
      this.#toPeer.set(frame.stream, this.#lastStream);
      this.#toRelay.set(this.#lastStream, frame.stream);
    }
    const mapped = this.#mapped(frame, this.#toPeer);
    if (mapped !== undefined) this.toPeer(mapped);
  }

  #mapped(frame: Frame, numbers: ReadonlyMap<number, number>): Frame | undefined {
    if (this.role !== 'gateway' || !('stream' in frame) || frame.stream === 0) return frame;
    const stream = numbers.get(frame.stream);
    return stream === undefined ? undefined : { ...frame, stream };
  }

  #learn(frame: Frame): void {
    if (frame.type === 'register') this.role = 'gateway';
    if (frame.type === 'join') {
      this.role = this.#hostile.probeTags.has(hex(frame.tag)) ? 'probe' : 'client';
      this.routingId = hex(frame.routingId);
    }
    if (frame.type === 'allow') this.#learnTags(frame.allowances);
    if (frame.type === 'open') {
      const { stream, op } = frame;
      const heard = { link: this, stream, op, asked: [], answered: [] };
      this.#ops.set(stream, op);
      this.#streams.set(stream, heard);
      if (this.role === 'client') this.#hostile.heard.push(heard);
    }
    if (frame.type === 'data') this.#streams.get(frame.stream)?.asked.push(frame.bytes);
  }

  #learnTags(allowances: Extract<Frame, { type: 'allow' }>['allowances']): void {
    for (const { tag, tagClass } of allowances) {
      if (tagClass === 'probe') this.#hostile.probeTags.add(hex(tag));
      else this.tags.push(tag);
    }
  }
}

function send(socket: WebSocket, message: Frame | Uint8Array): void {
  const bytes = message instanceof Uint8Array ? message : encodeFrame(message);
  if (socket.readyState === WebSocket.OPEN) socket.send(bytes);
  else if (socket.readyState === WebSocket.CONNECTING) socket.once('open', () => socket.send(bytes));
}

/** The newest one that is open. */
export function linkOf({ links }: Pick<HostileRelay, 'links'>, role: Role): Link {
  const link = [...links].findLast((one) => one.role === role);
  if (link === undefined) throw new Error(`no ${role} is connected`);
  return link;
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
