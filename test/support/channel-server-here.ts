/**
 * The sealed channel server of a running service with another clock, and with routes of the test's own behind it: for what takes
 * minutes, or more bytes than a small model says. The SDK reaches it through a transport, which is a way that breaks
 * when it is told to.
 */
import { onTestFinished } from 'vitest';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import type { PairedDevice } from '../../clients/sdk/index.ts';
import { pair } from '../../clients/sdk/index.ts';
import type { Operation, Transport } from '../../clients/sdk/transport.ts';
import type { InnerAnswer, InnerRequest } from '../../gateway/sealed/inner-request.ts';
import { createChannelServer, type ChannelServer } from '../../gateway/sealed/channel-server.ts';
import { createFakeTime, type FakeTime } from '../core/fake-time.ts';
import { newInvite } from './invites.ts';
import type { ServiceHere } from './service-here.ts';

export interface DoorHere {
  readonly channelServer: ChannelServer;
  /** Of channel server and clients. */
  readonly time: FakeTime;
  /** What arrived at the routes. */
  readonly ran: readonly InnerRequest[];
  /** How many handshakes were begun. */
  readonly handshakes: number;
  newTransport(): BreakableTransport;
}

export interface BreakableTransport extends Transport {
  /** What came from the gateway while it was frozen. */
  readonly swallowedBytes: number;
  /** Cuts what is open. */
  cut(): void;
  /** Nothing of what is open arrives any more, nor of what is begun until `thaw`; and neither end is told. */
  freeze(): void;
  thaw(): void;
}

export type Run = (request: InnerRequest) => Promise<InnerAnswer> | InnerAnswer;

export interface OpenedChannelServer {
  readonly channelServer: ChannelServer;
  /** What arrived at the routes. */
  readonly ran: readonly InnerRequest[];
}

/** Until the test ends. */
export function openChannelServer(
  { running }: ServiceHere,
  run: Run,
  time: Pick<FakeTime, 'now' | 'setTimer'>,
  maxBodyBytes = 1 << 20,
): OpenedChannelServer {
  const ran: InnerRequest[] = [];
  const channelServer = createChannelServer({
    ...time,
    elapsed: time.now,
    crypto: () => gatewayCrypto('node'),
    openPairings: () => running.identity.openPairings(),
    database: running.database,
    approvals: running.approvals,
    gatewayFacts: () => ({ gatewayName: 'test', gatewayId: '', urls: [], relays: [] }),
    codePairing: { isOffered: false, agentIndex: undefined },
    maxBodyBytes: () => maxBodyBytes,
    accessOf: () => undefined,
    tickMs: 40,
    run: async (request) => {
      if (request.fault !== undefined) throw request.fault.error;
      ran.push(request);
      return run(request);
    },
    onError: (error) => {
      throw error;
    },
  });
  onTestFinished(() => channelServer.close());
  return { channelServer, ran };
}

export async function openDoorHere(service: ServiceHere, run: Run): Promise<DoorHere> {
  const time = createFakeTime(Date.now());
  const { channelServer, ran } = openChannelServer(service, run, time);
  const ways: Way[] = [];
  return {
    channelServer,
    time,
    ran,
    get handshakes() {
      return ways.reduce((sum, way) => sum + way.handshakes, 0);
    },
    newTransport() {
      const way = new Way(channelServer);
      ways.push(way);
      return way;
    },
  };
}

export async function newPairedDevice(service: ServiceHere): Promise<PairedDevice> {
  const storage = { read: async () => undefined, write: async () => {}, erase: async () => {} };
  const device = { name: 'a phone', platform: 'test' };
  return { ...(await pair(await newInvite(service), { storage, device })), urls: [] };
}

/** A stream whose text the test has before. */
export function streamOf(pieces: Iterable<string> | AsyncIterable<string>): InnerAnswer {
  async function* body(): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) yield Buffer.from(piece);
  }
  return { status: 200, headers: [['content-type', 'text/event-stream']], bodyBytes: null, body: body() };
}

class Way implements BreakableTransport {
  swallowedBytes = 0;
  handshakes = 0;
  readonly #channelServer: ChannelServer;
  readonly #open = new Set<Exchange>();
  #isFrozen = false;

  constructor(channelServer: ChannelServer) {
    this.#channelServer = channelServer;
  }

  cut(): void {
    for (const exchange of this.#open) exchange.cut();
  }

  freeze(): void {
    this.#isFrozen = true;
    for (const exchange of this.#open) exchange.isFrozen = true;
  }

  thaw(): void {
    this.#isFrozen = false;
  }

  async exchange(
    operation: Operation,
    body: Uint8Array<ArrayBuffer>,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    if (operation === 'session') this.handshakes += 1;
    const gone = new AbortController();
    const source = { transport: 'lan', clientKey: 'a phone', gone: gone.signal, cut: () => gone.abort() } as const;
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        const exchange: Exchange = {
          isFrozen: this.#isFrozen,
          cut: () => {
            if (!this.#open.delete(exchange)) return;
            controller.error(new Error('cut'));
            // Who is frozen out does not hear of it either.
            if (!exchange.isFrozen) gone.abort();
          },
        };
        this.#open.add(exchange);
        signal.addEventListener('abort', exchange.cut, { once: true });
        if (this.#isFrozen) return;
        void this.#forward(this.#channelServer.handle(OPS[operation], source, once(body)), exchange, controller);
      },
    });
  }

  async #forward(
    pieces: AsyncIterable<Uint8Array>,
    exchange: Exchange,
    controller: ReadableStreamDefaultController<Uint8Array>,
  ): Promise<void> {
    for await (const piece of pieces) {
      if (exchange.isFrozen) this.swallowedBytes += piece.length;
      else if (this.#open.has(exchange)) controller.enqueue(piece);
    }
    if (!exchange.isFrozen && this.#open.delete(exchange)) controller.close();
  }
}

interface Exchange {
  isFrozen: boolean;
  readonly cut: () => void;
}

const OPS = { session: 'session', call: 'call', 'pair-invite': 'invite' } as const;

async function* once(body: Uint8Array): AsyncGenerator<Uint8Array> {
  yield body;
}
