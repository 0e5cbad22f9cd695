/** What a stranger learns of a gateway from a relay, who may take its places, and who reads the relay's figures. */
import { randomBytes } from 'node:crypto';
import { createServer, connect } from 'node:net';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import {
  DEVICE_TAG,
  makeRelayKey,
  PAIRING_TAG,
  rawClient,
  rawGateway,
  rawPeer,
  settled,
  relayHere,
  type RawPeer,
  type TestRelay,
} from '../support/relay-here.ts';
import { until } from '../support/wait.ts';

interface Answer {
  readonly frames: readonly unknown[];
  readonly tookMs: number;
}

/** What somebody is answered who joins with a tag, but for the nonce and the time that each HELLO has. */
async function joinWith(relay: TestRelay, routingId: Uint8Array, tag: Uint8Array): Promise<Answer> {
  const peer = await rawPeer(relay.url);
  await peer.frame('hello');
  const beganMs = performance.now();
  const answered = once(peer.socket, 'message');
  peer.send({ type: 'join', routingId, tag });
  await answered;
  const tookMs = performance.now() - beganMs;
  await until(() => peer.isClosed());
  return { frames: peer.frames.slice(1), tookMs };
}

describe('A stranger who knows where a gateway is, and has no tag of its', () => {
  test('hears the same, in the same time, whether the gateway is there or not', async () => {
    const relay = await relayHere();
    const [present, absent] = [(await rawGateway(relay)).key.routingId, makeRelayKey().routingId];
    const times: { present: number[]; absent: number[] } = { present: [], absent: [] };
    const SAMPLES = 200;
    // By turns, so that whatever else this machine does strikes both.
    for (let at = 0; at < SAMPLES; at += 1) {
      const [there, away] = [
        await joinWith(relay, present, randomBytes(16)),
        await joinWith(relay, absent, randomBytes(16)),
      ];
      expect(there.frames).toEqual(away.frames);
      times.present.push(there.tookMs);
      times.absent.push(away.tookMs);
    }
    // How often one of the first is slower than one of the second: one half where nothing tells them apart.
    const slower = times.present.flatMap((one) => times.absent.map((other) => (one > other ? 1 : 0)));
    const share = slower.reduce<number>((sum, one) => sum + one, 0) / slower.length;
    expect(Math.abs(share - 0.5)).toBeLessThan(0.2);
  });

  test('hears the same of a gateway whose places are all taken', async () => {
    const relay = await relayHere({ connectionsPerGateway: 1 });
    const gateway = await rawGateway(relay);
    await rawClient(relay, gateway.key.routingId);
    const { frames } = await joinWith(relay, gateway.key.routingId, randomBytes(16));
    expect(frames).toEqual([{ type: 'error', code: RELAY_CODE.offline }]);
  });
});

describe('A device that takes all the places of a gateway', () => {
  test('keeps no other device from connecting', async () => {
    const relay = await relayHere();
    const gateway = await rawGateway(relay);
    const { routingId } = gateway.key;
    const greedy: RawPeer[] = [];
    for (let at = 0; at < 70; at += 1) greedy.push(await rawClient(relay, routingId, DEVICE_TAG));
    const other = await rawClient(relay, routingId, PAIRING_TAG);
    for (let at = 0; at < 70; at += 1) greedy.push(await rawClient(relay, routingId, DEVICE_TAG));
    await settled(other);
    expect(other.isClosed()).toBe(false);
    expect(greedy.filter((peer) => !peer.isClosed())).toHaveLength(63);
  });

  test('keeps no other device from opening a stream', async () => {
    const relay = await relayHere({ streamsPerGateway: 32 });
    const gateway = await rawGateway(relay);
    const { routingId } = gateway.key;
    const [greedy, other] = [await rawClient(relay, routingId), await rawClient(relay, routingId, PAIRING_TAG)];
    for (let stream = 1; stream <= 32; stream += 1) greedy.send({ type: 'open', stream, op: 3 });
    await gateway.frame('open', 31);
    other.send({ type: 'open', stream: 1, op: 3 });
    await gateway.frame('open', 32);
    expect(await greedy.frame('reset')).toMatchObject({ stream: 1, code: RELAY_CODE.tooMany });
    greedy.send({ type: 'open', stream: 33, op: 3 });
    expect(await greedy.frame('reset', 1)).toMatchObject({ stream: 33, code: RELAY_CODE.tooMany });
    expect(other.frames.some(({ type }) => type === 'reset')).toBe(false);
  });
});

describe('Somebody who opens connections to a relay and says nothing', () => {
  test('keeps no device from connecting, not even one at the same address', async () => {
    const relay = await relayHere({ unauthenticatedPerAddress: 8, unauthenticatedConnections: 16 });
    const gateway = await rawGateway(relay);
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(Array.from({ length: 20 }, () => rawPeer(relay.url).catch(() => undefined)));
      const device = await rawClient(relay, gateway.key.routingId);
      expect(device.isClosed()).toBe(false);
    }
    expect(gateway.isClosed()).toBe(false);
  });

  test('and guesses at tags without end keeps no device from connecting', async () => {
    const relay = await relayHere({ unauthenticatedPerAddress: 8 });
    const gateway = await rawGateway(relay);
    for (let at = 0; at < 100; at += 1) await joinWith(relay, gateway.key.routingId, randomBytes(16));
    expect((await rawClient(relay, gateway.key.routingId)).isClosed()).toBe(false);
  });
});

describe('A stranger behind a proxy on the relay’s machine', () => {
  test('reads no figures of the relay, with a proxy that says nothing of him', async () => {
    const relay = await relayHere({}, { metrics: { host: '127.0.0.1', port: 0 } });
    const proxy = createServer((inside) => {
      const outside = connect(relay.port, '127.0.0.1');
      for (const socket of [inside, outside]) socket.on('error', () => undefined);
      inside.pipe(outside).pipe(inside);
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const { port } = proxy.address() as { port: number };
    const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
    expect([(await get('/healthz')).status, (await get('/metrics')).status]).toEqual([200, 404]);
    expect((await fetch(`http://127.0.0.1:${relay.metricsPort}/metrics`)).status).toBe(200);
    proxy.close();
  });
});
