/**
 * A gateway at one node and its clients at another: what the nodes tell each other is copied, and comes later, as over
 * a network.
 */
import { describe, expect, test } from 'vitest';
import { createDirectory, type Directory, type Send } from '../../relay/directory.ts';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import {
  collect,
  connectedTunnel,
  DEVICE_TAG,
  join,
  makeRelayKey,
  rawClient,
  rawGateway,
  rawPeer,
  relayHere,
  settled,
  tagOf,
} from '../support/relay-here.ts';
import { until } from '../support/wait.ts';

const CALL = 3;
const KIB = 1024;

/** Only what can be copied goes through, and nothing of it at once. */
function faraway(directory: Directory): Directory {
  const later =
    <Message>(send: Send<Message>): Send<Message> =>
    (message) => {
      const copy = structuredClone(message);
      setImmediate(() => send(copy));
    };
  return {
    claim: (claim, holder) =>
      directory.claim(structuredClone(claim), {
        replaced: () => void setImmediate(() => holder.replaced()),
        link: (toClient) => later(holder.link(later(toClient))),
      }),
    release: (claim) => directory.release(structuredClone(claim)),
    link: (routingId, toClient) => directory.link(routingId, toClient),
  };
}

async function twoNodes(limits: Parameters<typeof relayHere>[0] = {}, directory = faraway(createDirectory())) {
  return {
    ofGateway: await relayHere(limits, { directory }),
    ofClient: await relayHere(limits, { directory }),
  };
}

describe('a client at one node and its gateway at another', () => {
  test('a request goes through both, and its answer comes back, byte for byte', async () => {
    const { ofGateway, ofClient } = await twoNodes();
    const { key } = await connectedTunnel(ofGateway.url);
    const joined = await join(ofClient.url, key.routingId);
    const stream = joined.open(CALL);
    const sent = Buffer.alloc(1024 * KIB).map((_, at) => at * 31);
    const [answer] = await Promise.all([collect(stream.answer), stream.write(sent).then(() => stream.end())]);
    expect(answer.equals(sent)).toBe(true);
    joined.close();
    await until(() => ofClient.log.some((line) => line.includes('client gone')));
    expect(ofClient.log.some((line) => line.includes('"gateway"'))).toBe(false);
  });

  test('what a client does not read waits at the node of its gateway, and all of it comes in the end', async () => {
    // More than the sockets of this machine take.
    const limits = { connectionWindowBytes: 32 * 1024 * KIB, streamWindowBytes: 2048 * KIB, bytesPerSecond: 0 };
    // Nearby: what comes before a node far away hears of it is up to the credit of a connection, which is all of it here.
    const { ofGateway, ofClient } = await twoNodes(limits, createDirectory());
    const gateway = await rawGateway(ofGateway);
    const client = await rawClient(ofClient, gateway.key.routingId);
    const streams = Array.from({ length: 16 }, (_, at) => at + 1);
    for (const stream of streams) client.send({ type: 'open', stream, op: CALL });
    await gateway.frame('open', 15);
    client.socket.pause();
    for (const stream of streams)
      for (let at = 0; at < 64; at += 1)
        gateway.send({ type: 'data', stream, bytes: new Uint8Array(32 * KIB), isEnd: false });
    await until(() => ofGateway.heldBytes() > 0);
    client.socket.resume();
    const bytes = (): number =>
      client.frames.reduce((sum, frame) => sum + (frame.type === 'data' ? frame.bytes.length : 0), 0);
    await until(() => bytes() === 16 * 2048 * KIB);
    expect([ofGateway.heldBytes(), ofClient.heldBytes()]).toEqual([0, 0]);
  });

  test('each is told that the other has left', async () => {
    const { ofGateway, ofClient } = await twoNodes();
    const gateway = await rawGateway(ofGateway);
    const [client, other] = [
      await rawClient(ofClient, gateway.key.routingId),
      await rawClient(ofClient, gateway.key.routingId),
    ];
    client.send({ type: 'open', stream: 1, op: CALL });
    await gateway.frame('open');
    client.close();
    expect(await gateway.frame('reset')).toEqual({ type: 'reset', stream: 1, code: RELAY_CODE.offline });
    gateway.close();
    expect((await other.frame('error')).code).toBe(RELAY_CODE.offline);
  });

  test('a device that is revoked loses its streams and its connection', async () => {
    const { ofGateway, ofClient } = await twoNodes();
    const gateway = await rawGateway(ofGateway);
    const client = await rawClient(ofClient, gateway.key.routingId);
    client.send({ type: 'open', stream: 1, op: CALL });
    await gateway.frame('open');
    gateway.send({ type: 'deny', tags: [DEVICE_TAG] });
    expect((await client.frame('reset')).code).toBe(RELAY_CODE.revoked);
    expect((await client.frame('error')).code).toBe(RELAY_CODE.revoked);
  });

  test('a client is held to what the node of its gateway allows', async () => {
    const { ofGateway, ofClient } = await twoNodes({ streamsPerConnection: 1 });
    const gateway = await rawGateway(ofGateway);
    const client = await rawClient(ofClient, gateway.key.routingId);
    client.send({ type: 'open', stream: 1, op: CALL });
    client.send({ type: 'open', stream: 2, op: CALL });
    expect(await client.frame('reset')).toEqual({ type: 'reset', stream: 2, code: RELAY_CODE.tooMany });
    client.send({ type: 'open', stream: 1, op: CALL });
    expect((await client.frame('error')).code).toBe(RELAY_CODE.protocol);
  });

  test('a tag that does not count, and a gateway that is nowhere, are one and the same', async () => {
    const { ofGateway, ofClient } = await twoNodes();
    const { key } = await rawGateway(ofGateway);
    for (const [routingId, tag] of [
      [key.routingId, tagOf(9)],
      [makeRelayKey().routingId, DEVICE_TAG],
    ] as const) {
      const stranger = await rawPeer(ofClient.url);
      await stranger.frame('hello');
      stranger.send({ type: 'join', routingId, tag });
      expect((await stranger.frame('error')).code).toBe(RELAY_CODE.offline);
    }
  });

  test('a newer registration at the other node takes over', async () => {
    const { ofGateway, ofClient } = await twoNodes();
    const old = await rawGateway(ofGateway, { epoch: 1 });
    const client = await rawClient(ofClient, old.key.routingId);
    const gateway = await rawGateway(ofClient, { key: old.key, epoch: 2 });
    expect((await old.frame('goaway')).code).toBe(RELAY_CODE.replaced);
    expect((await client.frame('error')).code).toBe(RELAY_CODE.offline);
    // The old one's end takes nothing from the new one.
    const again = await rawClient(ofGateway, gateway.key.routingId);
    await settled(again);
    expect(again.isClosed()).toBe(false);
  });
});
