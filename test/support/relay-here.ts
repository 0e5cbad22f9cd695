/** A real relay in this process, real gateways' tunnels to it, and peers that speak the frames by hand. */
import { createPrivateKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { createRelayTunnel, type RelayTunnel, type RelayTunnelOptions } from '../../relay-client/relay-tunnel.ts';
import { DEFAULT_LIMITS, type RelayLimits } from '../../relay/limits.ts';
import { startRelay, type Relay, type RelayOptions } from '../../relay/relay-server.ts';
import { routingIdOf } from '../../relay/routing-id.ts';
import { decodeFrame, encodeFrame, SUBPROTOCOL, type Frame } from '../../relay/wire/frame.ts';
import type { Clock } from '../../relay/wire/heartbeat.ts';
import { joinRelay, type JoinedRelay } from '../../relay/wire/join-relay.ts';
import { registrationMessage } from '../../relay/wire/registration.ts';
import { until } from './wait.ts';

export const realClock: Clock = {
  setTimer: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  now: Date.now,
  random: Math.random,
};

export interface TestRelay extends Relay {
  readonly url: string;
  readonly log: string[];
}

/** Without the limit on connections of one address, since all tests have one. */
export async function startTestRelay(
  limits: Partial<RelayLimits> = {},
  options: Partial<RelayOptions> = {},
): Promise<TestRelay> {
  const log: string[] = [];
  const relay = await startRelay({
    host: '127.0.0.1',
    port: 0,
    limits: { ...DEFAULT_LIMITS, unauthenticatedPerAddress: 0, ...limits },
    log: (event) => log.push(JSON.stringify(event)),
    ...options,
  });
  return { ...relay, url: relay.origin, log };
}

/** One that ends with its test. */
export async function relayHere(...options: Parameters<typeof startTestRelay>): Promise<TestRelay> {
  const relay = await startTestRelay(...options);
  onTestFinished(() => relay.close());
  return relay;
}

export interface TestKey {
  readonly publicKey: Uint8Array;
  readonly routingId: Uint8Array;
  readonly secret: KeyObject;
  sign(bytes: Uint8Array): Uint8Array;
}

export function makeRelayKey(): TestKey {
  const pair = generateKeyPairSync('ed25519');
  const publicKey = new Uint8Array(pair.publicKey.export({ format: 'der', type: 'spki' }).subarray(12));
  const secret = createPrivateKey(pair.privateKey.export({ format: 'pem', type: 'pkcs8' }));
  return {
    publicKey,
    routingId: new Uint8Array(routingIdOf(publicKey)),
    secret,
    sign: (bytes) => new Uint8Array(sign(null, bytes, secret)),
  };
}

export const tagOf = (byte: number): Uint8Array => new Uint8Array(16).fill(byte);
export const DEVICE_TAG = tagOf(1);
export const PAIRING_TAG = tagOf(2);
const DAY_MS = 86_400_000;

export interface TestTunnel extends RelayTunnel {
  readonly said: string[];
  readonly key: TestKey;
}

/** A gateway that lets DEVICE_TAG and PAIRING_TAG in and answers each stream with what it was sent, unless told else. */
export function startTestTunnel(
  url: string,
  options: Partial<RelayTunnelOptions> & { key?: TestKey } = {},
): TestTunnel {
  const said: string[] = [];
  const key = options.key ?? makeRelayKey();
  let epoch = 0;
  const tunnel = createRelayTunnel({
    ...realClock,
    url,
    origin: url,
    nextEpoch: () => (epoch = Math.max(epoch + 1, Date.now())),
    tags: () => [
      { tag: DEVICE_TAG, expiresAtMs: Date.now() + DAY_MS, tagClass: 'device' },
      { tag: PAIRING_TAG, expiresAtMs: Date.now() + DAY_MS, tagClass: 'pairing' },
    ],
    onStream: (stream) => stream.answer(stream.bytes).catch(() => undefined),
    onError: () => said.push('a stream failed here'),
    environment: {},
    say: (text) => said.push(text),
    ...options,
    key,
  });
  return {
    state: () => tunnel.state(),
    deny: (tags) => tunnel.deny(tags),
    changed: () => tunnel.changed(),
    retryNow: () => tunnel.retryNow(),
    close: () => tunnel.close(),
    said,
    key,
  };
}

export async function connectedTunnel(
  url: string,
  options: Partial<RelayTunnelOptions> & { key?: TestKey } = {},
): Promise<TestTunnel> {
  const tunnel = startTestTunnel(url, options);
  await until(() => tunnel.state().phase === 'connected');
  return tunnel;
}

export function join(url: string, routingId: Uint8Array, tag = DEVICE_TAG): Promise<JoinedRelay> {
  const webSocket = (to: string, protocol: string): WebSocket =>
    new WebSocket(to, protocol, { perMessageDeflate: false });
  return joinRelay({ ...realClock, webSocket, url, routingId, tag });
}

export async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

/** One that speaks by hand. */
export interface RawPeer {
  readonly socket: WebSocket;
  readonly frames: Frame[];
  send(frame: Frame): void;
  sendBytes(bytes: Uint8Array): void;
  /** The first frame of a type, once it has come; later ones after `skip` of them. */
  frame<Type extends Frame['type']>(type: Type, skip?: number): Promise<Extract<Frame, { type: Type }>>;
  isClosed(): boolean;
  close(): void;
}

export async function rawPeer(url: string): Promise<RawPeer> {
  const socket = new WebSocket(url, SUBPROTOCOL, { perMessageDeflate: false });
  const frames: Frame[] = [];
  let isClosed = false;
  socket.on('message', (data: Buffer) => frames.push(decodeFrame(new Uint8Array(data))));
  socket.on('close', () => (isClosed = true));
  socket.on('error', () => undefined);
  await once(socket, 'open');
  return {
    socket,
    frames,
    send: (frame) => socket.send(encodeFrame(frame)),
    sendBytes: (bytes) => socket.send(bytes),
    frame: (type, skip = 0) =>
      until(() => frames.filter((one) => one.type === type)[skip] as Extract<Frame, { type: typeof type }> | undefined),
    isClosed: () => isClosed,
    close: () => socket.terminate(),
  };
}

/** A gateway that speaks by hand: registered, and letting DEVICE_TAG and PAIRING_TAG in. */
export async function rawGateway(
  relay: TestRelay,
  { key = makeRelayKey(), epoch = Date.now() }: { key?: TestKey; epoch?: number } = {},
): Promise<RawPeer & { readonly key: TestKey }> {
  const peer = await rawPeer(relay.url);
  await register(peer, { key, epoch, origin: relay.origin });
  await peer.frame('registered');
  const expiresAtMinute = Math.floor(Date.now() / 60_000) + 60;
  peer.send({
    type: 'allow',
    allowances: [
      { tag: DEVICE_TAG, expiresAtMinute, tagClass: 'device' },
      { tag: PAIRING_TAG, expiresAtMinute, tagClass: 'pairing' },
    ],
  });
  await settled(peer);
  return { ...peer, key };
}

export async function register(
  peer: RawPeer,
  { key, epoch, origin }: { key: TestKey; epoch: number; origin: string },
): Promise<void> {
  const { nonce } = await peer.frame('hello');
  const registration = { publicKey: key.publicKey, epoch, caps: 0, admission: new Uint8Array(0) };
  const signature = key.sign(registrationMessage({ origin, nonce }, registration));
  peer.send({ type: 'register', signature, ...registration });
}

export async function rawClient(relay: TestRelay, routingId: Uint8Array, tag = DEVICE_TAG): Promise<RawPeer> {
  const peer = await rawPeer(relay.url);
  await peer.frame('hello');
  peer.send({ type: 'join', routingId, tag });
  await peer.frame('joined');
  return peer;
}

let pings = 0;

/** All that was sent before has been acted on: the relay answered a PING that came after. */
export async function settled(peer: RawPeer): Promise<void> {
  const ping = (pings += 1);
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setUint32(0, ping);
  peer.send({ type: 'ping', bytes });
  const isAnswer = (frame: Frame): boolean =>
    frame.type === 'pong' && new DataView(frame.bytes.buffer, frame.bytes.byteOffset).getUint32(0) === ping;
  await until(() => peer.frames.some(isAnswer) || peer.isClosed());
}
