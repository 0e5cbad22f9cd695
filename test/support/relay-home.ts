/**
 * Homes behind a relay that lies, in this process: the sealed channel server of a running service with routes of the test's own,
 * its tunnel, and devices that come through the relay. All but the real relay go by a clock that is fast.
 */
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { formatBase64url } from '../../channel/base64url.ts';
import type { RoutingId } from '../../channel/keys.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { createRelayTunnels, type RelayTunnels } from '../../service/relay-tunnels.ts';
import { connect, pair, PosternError, type PairedDevice, type PosternClient } from '../../clients/sdk/index.ts';
import { relayOfInvite, relaysOf } from '../../clients/sdk/relay.ts';
import type { InnerAnswer, InnerRequest } from '../../gateway/sealed/inner-request.ts';
import type { ChannelServer } from '../../gateway/sealed/channel-server.ts';
import type { Clock } from '../../relay/wire/heartbeat.ts';
import { openChannelServer, streamOf } from './channel-server-here.ts';
import { createFastTime, type FastTime } from './fast-time.ts';
import { startHostileRelay, type HostileRelay } from './hostile-relay.ts';
import { newInvite } from './invites.ts';
import { startTestRelay, type TestRelay } from './relay-here.ts';
import type { ServiceHere } from './service-here.ts';
import { until } from './wait.ts';

const crypto = gatewayCrypto('node');

export interface HostileWorld {
  readonly hostile: HostileRelay;
  readonly time: FastTime;
  /** The real one, at the moment. */
  relay(): TestRelay;
  /** Ends it at once, and starts another. */
  killRelay(): Promise<void>;
}

/** Until the test ends. */
export async function startHostileWorld(): Promise<HostileWorld> {
  const hostile = await startHostileRelay();
  // Handshakes are counted by the world's clock.
  const limits = { bytesPerSecond: 0, handshakesPerSecond: 10_000 };
  const start = async (): Promise<TestRelay> => {
    const started = await startTestRelay(limits, { origin: hostile.url });
    hostile.behind = `ws://127.0.0.1:${started.port}`;
    return started;
  };
  let relay = await start();
  const time = createFastTime(() => hostile.moved());
  onTestFinished(async () => {
    time.stop();
    await hostile.close();
    await relay.close();
  });
  return {
    hostile,
    time,
    relay: () => relay,
    async killRelay() {
      hostile.behind = undefined;
      await relay.close();
      relay = await start();
    },
  };
}

export interface Home {
  readonly channelServer: ChannelServer;
  readonly routingId: RoutingId;
  /** What arrived at its routes. */
  readonly ran: readonly InnerRequest[];
  isConnected(): boolean;
  newClient(device: PairedDevice): PosternClient;
  /** Pairs a device through the relay. */
  pair(): Promise<PairedDevice>;
}

/** Until the test ends. @returns it when it is connected */
export async function startHome(world: HostileWorld, service: ServiceHere): Promise<Home> {
  const { hostile, time } = world;
  const { channelServer, ran } = openChannelServer(service, answerTo, time);
  const { identity, database } = service.running;
  // Whole milliseconds, as a real clock has them.
  const now = (): number => Math.floor(time.now());
  const clock: Clock = { now, random: Math.random, setTimer: time.setTimer };
  const tunnels = createRelayTunnels({
    ...clock,
    setTimer: time.setTimer,
    origins: [hostile.url],
    opened: identity.opened,
    database,
    environment: {},
    say: () => undefined,
  });
  tunnels.begin(channelServer);
  onTestFinished(() => tunnels.close());
  const { routingId } = await until(() => connected(tunnels));
  const webSocket = (url: string, protocol: string): WebSocket =>
    new WebSocket(url, protocol, { perMessageDeflate: false });
  const platform = { crypto, now, setTimer: time.setTimer, webSocket };
  const relay = { origin: hostile.url, routingId };
  return {
    channelServer,
    routingId,
    ran,
    isConnected: () => connected(tunnels) !== undefined,
    newClient(device) {
      const relayed = { ...device, urls: [], relays: [{ origin: hostile.url, rid: formatBase64url(routingId) }] };
      const client = connect(relayed, { ...platform, transports: relaysOf(relayed, platform) });
      onTestFinished(() => client.close());
      return client;
    },
    async pair() {
      const invite = { ...(await newInvite(service, { routingIds: [routingId] })), urls: [], relay };
      tunnels.changed();
      const storage = { read: async () => undefined, write: async () => {}, erase: async () => {} };
      const device = { name: 'a phone', platform: 'test' };
      const transports = relayOfInvite(invite, platform);
      const paired = await pair(invite, { ...platform, storage, device, transports });
      tunnels.changed();
      return paired;
    },
  };
}

function connected(tunnels: RelayTunnels): { readonly routingId: RoutingId } | undefined {
  return tunnels.list().find(({ phase }) => phase === 'connected');
}

/** What a home answers is known before: it depends on the path alone. */
const PIECES: ReadonlyMap<string, { readonly count: number; readonly bytes: number }> = new Map([
  ['small', { count: 1, bytes: 100 }],
  ['large', { count: 1, bytes: 300_000 }],
  ['streamed', { count: 30, bytes: 3000 }],
]);

/** Stands in each question and in each answer. */
export const CANARY = 'CANARY-7c1f0e5a';

function piecesOf(path: string): readonly string[] {
  const { count, bytes } = PIECES.get(path.split('/')[2] ?? '') ?? { count: 1, bytes: 10 };
  return Array.from({ length: count }, (_, at) => `${CANARY} ${path} ${at} `.padEnd(bytes, `${path} `));
}

function answerTo({ path }: InnerRequest): InnerAnswer {
  const pieces = piecesOf(path);
  const answer = streamOf(pieces);
  if (pieces.length > 1) return answer;
  return { ...answer, headers: [['content-type', 'text/plain']], bodyBytes: pieces[0]!.length };
}

export type Method = 'GET' | 'POST';

/** `done` with the right answer, or the code of the error. @throws anything else */
export async function ask(client: PosternClient, method: Method, path: string): Promise<string> {
  const body = method === 'POST' ? { body: `${CANARY} ${'x'.repeat(2000)}` } : {};
  try {
    const response = await client.fetch(path, { method, ...body });
    if ((await response.text()) !== piecesOf(path).join('')) throw new Error(`a wrong answer to ${path}`);
    return 'done';
  } catch (error) {
    if (!(error instanceof PosternError)) throw error;
    return error.code;
  }
}

export const countOf = ({ ran }: Home, path: string): number => ran.filter((request) => request.path === path).length;

/** Nothing that a device left behind may stay longer: an answer waits for 120 s to be taken, and as long for its reader. */
const CALM_WITHIN_MS = 10 * 60_000;

/** When all was let go that was kept for somebody. @throws if that took too long */
export async function calm(world: HostileWorld, { channelServer }: Home): Promise<void> {
  const beganMs = world.time.now();
  await until(() => channelServer.counts().calls === 0 && world.relay().heldBytes() === 0);
  if (world.time.now() - beganMs > CALM_WITHIN_MS) throw new Error('something was kept for nobody');
}

/** All that a relay's operator could write down: each message, and each stream as a whole. */
export function allHeard({ messages, heard }: HostileRelay): readonly Buffer[] {
  const streams = heard.flatMap(({ asked, answered }) => [Buffer.concat(asked), Buffer.concat(answered)]);
  return [...messages, ...streams];
}
