/** What one device of a gateway can take from the others at a relay: turns, rate and the quota of a day. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { formatRoutingId } from '../../relay/routing-id.ts';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import { encodeFrame, SUBPROTOCOL, type Frame } from '../../relay/wire/frame.ts';
import {
  DEVICE_TAG,
  PAIRING_TAG,
  rawClient,
  rawGateway,
  relayHere,
  settled,
  type RawPeer,
  type TestRelay,
} from '../support/relay-here.ts';
import { until } from '../support/wait.ts';

const KIB = 1024;
const CALL = 3;

const open = (stream: number): Frame => ({ type: 'open', stream, op: CALL });
const data = (stream: number, length: number): Frame => ({
  type: 'data',
  stream,
  bytes: new Uint8Array(length),
  isEnd: false,
});

/** Sends so much in one stream after another, so that no stream's own window matters. */
function send(peer: RawPeer, bytes: number, firstStream = 1): void {
  for (let at = 0; at * 32 * KIB < bytes; at += 1) {
    peer.send(open(firstStream + at));
    peer.send(data(firstStream + at, 32 * KIB));
    peer.send({ type: 'reset', stream: firstStream + at, code: RELAY_CODE.internal });
  }
}

/** What a connection was granted, or one stream of it. */
const credit = ({ frames }: RawPeer, stream = 0): number =>
  frames.reduce((sum, frame) => sum + (frame.type === 'window' && frame.stream === stream ? frame.credit : 0), 0);

/** A connection that says at once all that a client says to join, as fast as anybody can. */
async function hasty(relay: TestRelay, from: string, routingId: Uint8Array): Promise<Socket & { go(): void }> {
  const socket = connect({ port: relay.port, host: '127.0.0.1', localAddress: from });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined).resume();
  await once(socket, 'connect');
  const join = encodeFrame({ type: 'join', routingId, tag: DEVICE_TAG });
  const upgrade = [
    'GET / HTTP/1.1',
    'Host: relay',
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`,
    `Sec-WebSocket-Protocol: ${SUBPROTOCOL}`,
  ];
  // One masked binary message; its mask is all zeros.
  const message = Buffer.concat([Buffer.of(0x82, 0x80 | join.length, 0, 0, 0, 0), join]);
  const bytes = Buffer.concat([Buffer.from(`${upgrade.join('\r\n')}\r\n\r\n`), message]);
  return Object.assign(socket, { go: () => void socket.write(bytes) });
}

describe('A device that opens very many connections to a relay at once', () => {
  /** @returns how many of the many were let in before the one that came last */
  async function countBefore(relay: TestRelay, { many, from }: { many: number; from: string }): Promise<number> {
    const [crowded, other] = [await rawGateway(relay), await rawGateway(relay)];
    const crowd = [];
    for (let at = 0; at < many; at += 1) crowd.push(await hasty(relay, '127.0.0.2', crowded.key.routingId));
    const last = await hasty(relay, from, other.key.routingId);
    for (const one of [...crowd, last]) one.go();
    const joined = () => relay.log.filter((line) => line.includes('"event":"client"'));
    const route = formatRoutingId(other.key.routingId).slice(0, 4);
    const at = () => joined().findIndex((line) => line.includes(route));
    await until(() => at() >= 0);
    return at();
  }

  test('lets a device at another address in before them', async () => {
    expect(await countBefore(await relayHere(), { many: 200, from: '127.0.0.3' })).toBeLessThan(10);
  });

  test('lets a device at the same address in after as many as may wait there', async () => {
    const relay = await relayHere({ unauthenticatedPerAddress: 20 });
    expect(await countBefore(relay, { many: 200, from: '127.0.0.2' })).toBeLessThan(25);
  });
});

describe('A device that sends, or has sent to it, without end', () => {
  // Time stands still, so that nobody is granted what comes with time.
  const limits = { bytesPerSecond: 64 * KIB, burstBytes: 512 * KIB, connectionWindowBytes: 512 * KIB };
  const still = { elapsedMs: () => 0 };
  const GREEDY = 5;

  async function twoDevices(relay: TestRelay) {
    const gateway = await rawGateway(relay);
    const { routingId } = gateway.key;
    const greedy: RawPeer[] = [];
    for (let at = 0; at < GREEDY; at += 1) greedy.push(await rawClient(relay, routingId, DEVICE_TAG));
    return { gateway, greedy, other: await rawClient(relay, routingId, PAIRING_TAG) };
  }

  test('to its gateway: slows down itself, over all its connections, and no other device', async () => {
    const { greedy, other } = await twoDevices(await relayHere(limits, still));
    for (const peer of greedy) send(peer, 512 * KIB);
    await Promise.all(greedy.map(settled));
    send(other, 512 * KIB);
    await settled(other);
    expect(credit(other)).toBe(512 * KIB);
    // A burst of one, and no more than a window of each beyond it.
    expect(greedy.reduce((sum, peer) => sum + credit(peer), 0)).toBeLessThanOrEqual(1024 * KIB);
    expect(other.frames.some(({ type }) => type === 'error' || type === 'reset')).toBe(false);
  });

  test('from its gateway: slows down its own streams, and none of another device', async () => {
    const relay = await relayHere(
      { ...limits, streamWindowBytes: 128 * KIB, connectionWindowBytes: 8192 * KIB },
      still,
    );
    const { gateway, greedy, other } = await twoDevices(relay);
    // Streams are numbered at the gateway as they come: 1 to 20 are the greedy one's.
    for (const peer of greedy) {
      for (let stream = 1; stream <= 4; stream += 1) peer.send(open(stream));
      await settled(peer);
    }
    other.send(open(1));
    await gateway.frame('open', 20);
    for (let stream = 1; stream <= 21; stream += 1)
      for (let at = 0; at < 4; at += 1) gateway.send(data(stream, 32 * KIB));
    await settled(gateway);
    const wants = [other, ...greedy.flatMap((peer) => [peer])];
    for (const peer of wants) peer.send({ type: 'window', stream: 1, credit: 128 * KIB });
    await Promise.all(wants.map(settled));
    await settled(gateway);
    const granted = (stream: number) => credit(gateway, stream);
    expect(granted(21)).toBe(128 * KIB);
    expect(Array.from({ length: 20 }, (_, at) => granted(at + 1)).filter((bytes) => bytes > 0)).toEqual([]);
  });

  test('is refused new streams, whose windows are new as well, and another device is not', async () => {
    const { gateway, greedy, other } = await twoDevices(await relayHere(limits, still));
    for (const peer of greedy) send(peer, 512 * KIB);
    await Promise.all(greedy.map(settled));
    greedy[0]!.send(open(100));
    await settled(greedy[0]!);
    expect(greedy[0]!.frames).toContainEqual({ type: 'reset', stream: 100, code: RELAY_CODE.rate });
    other.send(open(1));
    await settled(other);
    await settled(gateway);
    expect(other.frames.some(({ type }) => type === 'reset')).toBe(false);
  });

  test('and uses up its gateway’s quota of the day: another device has its part of it all the same', async () => {
    const relay = await relayHere({ bytesPerDay: 256 * KIB });
    const { greedy, other } = await twoDevices(relay);
    send(greedy[0]!, 512 * KIB);
    const refusal = await greedy[0]!.frame('reset');
    expect(refusal.code).toBe(RELAY_CODE.quota);
    send(other, 64 * KIB);
    await settled(other);
    expect(other.frames.some(({ type }) => type === 'reset')).toBe(false);
    // One half, since they are two: no more than twice the quota in all.
    send(other, 256 * KIB, 10);
    expect((await other.frame('reset')).code).toBe(RELAY_CODE.quota);
    greedy[1]!.send(open(1));
    expect((await greedy[1]!.frame('reset')).code).toBe(RELAY_CODE.quota);
  });
});
