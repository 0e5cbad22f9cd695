/** What a relay bears: hostile peers, floods, readers that never read. Its memory has a bound, and others go on. */
import { connect } from 'node:net';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { parseLimits } from '../../relay/limits.ts';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import { encodeFrame, SUBPROTOCOL, type Frame } from '../../relay/wire/frame.ts';
import {
  PAIRING_TAG,
  rawClient,
  rawGateway,
  rawPeer,
  settled,
  relayHere,
  type RawPeer,
} from '../support/relay-here.ts';
import { until } from '../support/wait.ts';

const data = (stream: number, length: number, isEnd = false): Frame => ({
  type: 'data',
  stream,
  bytes: new Uint8Array(length),
  isEnd,
});

async function refusal(peer: RawPeer): Promise<number> {
  const { code } = await peer.frame('error');
  await until(() => peer.isClosed());
  return code;
}

describe('before anybody is known', () => {
  test('a frame over 256 bytes ends the connection', async () => {
    const relay = await relayHere();
    const peer = await rawPeer(relay.url);
    peer.send(data(1, 300));
    expect(await refusal(peer)).toBe(RELAY_CODE.protocol);
  });

  test.each<readonly [string, (peer: RawPeer) => void]>([
    ['a stream', (peer) => peer.send({ type: 'open', stream: 1, op: 3 })],
    ['text', (peer) => peer.socket.send('{"type":"auth"}')],
    ['nothing at all', (peer) => peer.sendBytes(new Uint8Array(0))],
    ['tags', (peer) => peer.send({ type: 'deny', tags: [] })],
  ])('%s ends it too', async (_name, misbehave) => {
    const relay = await relayHere();
    const peer = await rawPeer(relay.url);
    misbehave(peer);
    expect(await refusal(peer)).toBe(RELAY_CODE.protocol);
  });

  test('whoever says nothing has to go', async () => {
    const relay = await relayHere({ authenticationMs: 50 });
    expect(await refusal(await rawPeer(relay.url))).toBe(RELAY_CODE.timeout);
  });

  test('whoever sends its request, or its first frame, a byte at a time has to go', async () => {
    const relay = await relayHere({ authenticationMs: 300 });
    const http = connect(relay.port, '127.0.0.1');
    http.on('error', () => undefined);
    http.write('GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ');
    const drip = setInterval(() => http.write('a'), 100);
    await until(() => http.destroyed);
    clearInterval(drip);
    const peer = await rawPeer(relay.url);
    const under = connect(relay.port, '127.0.0.1');
    under.on('error', () => undefined);
    under.write(
      `GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\nSec-WebSocket-Protocol: ${SUBPROTOCOL}\r\n\r\n`,
    );
    // The beginning of a WebSocket frame whose rest never comes.
    const dripFrame = setInterval(() => under.write(Buffer.of(0x82)), 100);
    await until(() => under.destroyed);
    clearInterval(dripFrame);
    await until(() => peer.isClosed());
  });

  test('a message beyond what a frame may be is not even read', async () => {
    const relay = await relayHere();
    const peer = await rawPeer(relay.url);
    peer.sendBytes(new Uint8Array(40_000));
    await until(() => peer.isClosed());
  });

  test('without the subprotocol nobody is heard; of too many from one address who waits for longest has to go', async () => {
    const relay = await relayHere({ unauthenticatedPerAddress: 3 });
    const status = async (protocol: string[]): Promise<number> => {
      const socket = new WebSocket(relay.url, protocol);
      socket.on('error', () => undefined);
      const answered = once(socket, 'unexpected-response').then(([, response]) => {
        socket.terminate();
        return (response as { statusCode: number }).statusCode;
      });
      return Promise.race([answered, once(socket, 'open').then(() => 101)]);
    };
    expect(await status(['other'])).toBe(400);
    const silent = [await rawPeer(relay.url), await rawPeer(relay.url), await rawPeer(relay.url)];
    expect(await status([SUBPROTOCOL])).toBe(101);
    expect(await refusal(silent[0]!)).toBe(RELAY_CODE.tooMany);
    expect(silent.map((peer) => peer.isClosed())).toEqual([true, false, false]);
  });
});

test('it answers /healthz, its own figures at a place of their own, and serves nothing else', async () => {
  const relay = await relayHere({}, { metrics: { host: '127.0.0.1', port: 0 } });
  await rawGateway(relay);
  const get = (path: string, port = relay.port): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`);
  expect(await (await get('/healthz')).json()).toEqual({ status: 'ok' });
  expect(await (await get('/metrics', relay.metricsPort)).text()).toContain('postern_relay_gateways 1');
  expect((await get('/metrics')).status).toBe(404);
  expect((await get('/healthz', relay.metricsPort)).status).toBe(404);
  expect((await get('/')).status).toBe(404);
});

describe('streams', () => {
  test('beyond the limits are refused: of a connection, of a gateway, handshakes a second', async () => {
    const relay = await relayHere({ streamsPerConnection: 3, streamsPerGateway: 5 });
    const gateway = await rawGateway(relay);
    const [one, two] = [await rawClient(relay, gateway.key.routingId), await rawClient(relay, gateway.key.routingId)];
    for (let id = 1; id <= 4; id += 1) one.send({ type: 'open', stream: id, op: 3 });
    expect(await one.frame('reset')).toMatchObject({ stream: 4, code: RELAY_CODE.tooMany });
    for (let id = 1; id <= 3; id += 1) two.send({ type: 'open', stream: id, op: 3 });
    expect(await two.frame('reset')).toMatchObject({ stream: 3, code: RELAY_CODE.tooMany });
    two.send({ type: 'reset', stream: 1, code: 10 });
    two.send({ type: 'reset', stream: 2, code: 10 });
    const handshakes = await rawClient(relay, gateway.key.routingId);
    for (let id = 1; id <= 5; id += 1) {
      handshakes.send({ type: 'open', stream: id, op: 1 });
      handshakes.send({ type: 'reset', stream: id, code: 10 });
    }
    expect(await handshakes.frame('reset')).toMatchObject({ stream: 5, code: RELAY_CODE.rate });
  });

  test('connections beyond the limit of a gateway take the oldest place of the same tag, or are refused', async () => {
    const relay = await relayHere({ connectionsPerGateway: 1 });
    const gateway = await rawGateway(relay);
    const first = await rawClient(relay, gateway.key.routingId);
    const second = await rawClient(relay, gateway.key.routingId);
    expect(await refusal(first)).toBe(RELAY_CODE.tooMany);
    const other = await rawPeer(relay.url);
    other.send({ type: 'join', routingId: gateway.key.routingId, tag: PAIRING_TAG });
    expect(await refusal(other)).toBe(RELAY_CODE.tooMany);
    expect(second.isClosed()).toBe(false);
  });

  test('more than was granted resets the stream, on both sides', async () => {
    const relay = await relayHere();
    const gateway = await rawGateway(relay);
    const client = await rawClient(relay, gateway.key.routingId);
    client.send({ type: 'open', stream: 1, op: 3 });
    for (let sent = 0; sent < 8; sent += 1) client.send(data(1, 32_768));
    await settled(client);
    expect(client.frames.some((frame) => frame.type === 'reset')).toBe(false);
    client.send(data(1, 1));
    expect(await client.frame('reset')).toMatchObject({ stream: 1, code: RELAY_CODE.flow });
    expect(await gateway.frame('reset')).toMatchObject({ code: RELAY_CODE.flow });
  });

  test('a grant of more than was taken resets it: nobody makes the relay hold without end', async () => {
    const relay = await relayHere();
    const gateway = await rawGateway(relay);
    const client = await rawClient(relay, gateway.key.routingId);
    client.send({ type: 'open', stream: 1, op: 3 });
    client.send({ type: 'window', stream: 1, credit: 1 });
    expect(await client.frame('reset')).toMatchObject({ code: RELAY_CODE.flow });
  });

  test.each<readonly [string, Frame]>([
    ['a stream that was never opened', data(7, 1)],
    ['a stream number used twice', { type: 'open', stream: 1, op: 3 }],
    ['a name for itself', { type: 'open', stream: 9, op: 3, connectionTag: new Uint8Array(8) }],
    ['a second JOIN', { type: 'join', routingId: new Uint8Array(15), tag: new Uint8Array(16) }],
    ['a gateway’s frame', { type: 'deny', tags: [] }],
    ['a relay’s frame', { type: 'goaway', code: 12, minMs: 0, spreadMs: 0, url: '' }],
  ])('%s ends the connection, and its streams at the gateway', async (_name, frame) => {
    const relay = await relayHere();
    const gateway = await rawGateway(relay);
    const client = await rawClient(relay, gateway.key.routingId);
    client.send({ type: 'open', stream: 1, op: 3 });
    client.send(frame);
    expect(await refusal(client)).toBe(RELAY_CODE.protocol);
    expect(await gateway.frame('reset')).toMatchObject({ code: RELAY_CODE.offline });
    expect(gateway.isClosed()).toBe(false);
  });

  test('every frame of random bytes ends at most its own connection', async () => {
    const relay = await relayHere();
    const gateway = await rawGateway(relay);
    for (let type = 0; type < 32; type += 1) {
      const client = await rawClient(relay, gateway.key.routingId);
      client.send({ type: 'open', stream: 1, op: 3 });
      for (const length of [0, 1, 4, 31])
        client.sendBytes(Buffer.concat([Buffer.of(type, 0, 0, 0, 0, 1), Buffer.alloc(length, type)]));
      await settled(client);
      client.close();
    }
    await settled(gateway);
    expect(gateway.isClosed()).toBe(false);
    expect(relay.log.filter((line) => line.includes('failed'))).toEqual([]);
  });
});

describe('readers that never read', () => {
  test('cost the relay what their streams may hold, and others are as quick as ever', async () => {
    const relay = await relayHere({ bytesPerSecond: 0, streamsPerGateway: 200 });
    const gateway = await rawGateway(relay);
    const client = await rawClient(relay, gateway.key.routingId);
    // It never reads its socket again.
    client.socket.pause();
    const STREAMS = 32;
    for (let id = 1; id <= STREAMS; id += 1) client.send({ type: 'open', stream: id, op: 3 });
    await gateway.frame('open', STREAMS - 1);
    // As much as the credits allow, of the streams and of the connection.
    let granted = 4_194_304;
    let at = 0;
    gateway.socket.on('message', () => {
      for (; at < gateway.frames.length; at += 1) {
        const frame = gateway.frames[at]!;
        if (frame.type === 'window' && frame.stream === 0) granted += frame.credit;
      }
    });
    for (let round = 0; round < 16; round += 1) {
      for (let id = 1; id <= STREAMS; id += 1) {
        await until(() => granted >= 16_384);
        granted -= 16_384;
        gateway.send(data(id, 16_384));
      }
    }
    await settled(gateway);
    const held = relay.heldBytes();
    console.log(`  held for a reader that never reads, ${STREAMS} streams: ${(held / 1024 / 1024).toFixed(2)} MiB`);
    expect(held).toBeGreaterThan(1024 * 1024);
    expect(held).toBeLessThanOrEqual(STREAMS * 262_144);
    const other = await rawClient(relay, gateway.key.routingId);
    other.send({ type: 'open', stream: 1, op: 3 });
    await gateway.frame('open', STREAMS);
    gateway.send(data(STREAMS + 1, 16_384, true));
    expect((await other.frame('data')).bytes.length).toBe(16_384);
    client.close();
    await until(() => relay.heldBytes() === 0);
  });

  test('lose their streams when the relay holds too much in all', async () => {
    const relay = await relayHere({ bytesPerSecond: 0, heldBytes: 500_000, streamWindowBytes: 65_536 });
    const gateway = await rawGateway(relay);
    const client = await rawClient(relay, gateway.key.routingId);
    client.socket.pause();
    for (let id = 1; id <= 32; id += 1) client.send({ type: 'open', stream: id, op: 3 });
    await gateway.frame('open', 31);
    // The socket’s own buffers fill first, and small ones of the system’s with them: so it is sent until it is told.
    for (let round = 0; round < 2 && !gateway.frames.some((frame) => frame.type === 'reset'); round += 1)
      for (let id = 1; id <= 32; id += 1) for (let slice = 0; slice < 2; slice += 1) gateway.send(data(id, 16_384));
    await settled(gateway);
    expect(relay.heldBytes()).toBeLessThanOrEqual(500_000);
    expect(gateway.isClosed()).toBe(false);
  });

  test('who has answers made, and reads none, is cut off', async () => {
    const relay = await relayHere();
    const gateway = await rawGateway(relay);
    const client = await rawClient(relay, gateway.key.routingId);
    client.socket.pause();
    const ping = encodeFrame({ type: 'ping', bytes: new Uint8Array(8) });
    // Writes fail once it is cut off.
    client.socket.on('error', () => undefined);
    await until(async () => {
      for (let sent = 0; sent < 5000; sent += 1) client.sendBytes(ping);
      return relay.log.some((line) => line.includes('client gone'));
    });
    expect(relay.log.find((line) => line.includes('client gone'))).toContain(`"code":${RELAY_CODE.flow}`);
  });
});

describe('a rate and a quota', () => {
  test('who sends faster than the rate is granted more only as time goes by', async () => {
    let elapsed = 0;
    const limits = { bytesPerSecond: 1_000_000, burstBytes: 1_000_000, connectionWindowBytes: 1_000_000 };
    const relay = await relayHere({ ...limits, streamWindowBytes: 1_000_000 }, { elapsedMs: () => elapsed });
    const gateway = await rawGateway(relay);
    const client = await rawClient(relay, gateway.key.routingId);
    const grants = (): number =>
      client.frames.reduce((sum, frame) => sum + (frame.type === 'window' && frame.stream === 0 ? frame.credit : 0), 0);
    const send = async (bytes: number): Promise<void> => {
      for (let sent = 0; sent < bytes; sent += 25_000) {
        client.send({ type: 'open', stream: (stream += 1), op: 3 });
        client.send(data(stream, 25_000));
        client.send({ type: 'reset', stream, code: 10 });
      }
      await settled(client);
    };
    let stream = 0;
    await send(1_000_000);
    expect(grants()).toBe(1_000_000);
    await send(1_000_000);
    expect(grants()).toBe(1_000_000);
    elapsed += 1_000;
    await until(() => grants() === 2_000_000);
  });

  test('whoever sends beyond the window of the connection is cut off', async () => {
    const relay = await relayHere({ bytesPerSecond: 1, burstBytes: 1, connectionWindowBytes: 262_144 });
    const gateway = await rawGateway(relay);
    const client = await rawClient(relay, gateway.key.routingId);
    client.send({ type: 'open', stream: 1, op: 3 });
    for (let sent = 0; sent < 9; sent += 1) client.send(data(1, 32_768));
    expect(await refusal(client)).toBe(RELAY_CODE.flow);
  });

  test('the quota of a day ends streams, and is full again the next', async () => {
    let nowMs = Date.now();
    const relay = await relayHere({ bytesPerDay: 10_000 }, { now: () => nowMs });
    const gateway = await rawGateway(relay);
    const client = await rawClient(relay, gateway.key.routingId);
    client.send({ type: 'open', stream: 1, op: 3 });
    client.send(data(1, 10_001));
    expect(await client.frame('reset')).toMatchObject({ code: RELAY_CODE.quota });
    client.send({ type: 'open', stream: 2, op: 3 });
    expect(await client.frame('reset', 1)).toMatchObject({ stream: 2, code: RELAY_CODE.quota });
    nowMs += 86_400_000;
    gateway.send({
      type: 'allow',
      allowances: [{ tag: new Uint8Array(16).fill(1), expiresAtMinute: 0xffff_ffff, tagClass: 'device' }],
    });
    await settled(gateway);
    client.send({ type: 'open', stream: 3, op: 3 });
    expect(await gateway.frame('open', 1)).toMatchObject({ op: 3 });
  });
});

test('whoever falls silent is dead, and whoever answers is not', async () => {
  const relay = await relayHere({ pingEveryMs: 100, pingSpreadMs: 10, deadAfterMs: 1500 });
  const [silent, alive] = [await rawGateway(relay), await rawGateway(relay)];
  alive.socket.on('message', () => alive.send({ type: 'pong', bytes: new Uint8Array(8) }));
  await until(() => silent.isClosed());
  await alive.frame('ping');
  expect(alive.isClosed()).toBe(false);
});

test('limits are read from text, or refused with the way to say it', () => {
  expect(parseLimits(['bytesPerSecond=0', 'authenticationMs=9'])).toMatchObject({
    bytesPerSecond: 0,
    authenticationMs: 9,
  });
  for (const text of [
    'what=1',
    'authenticationMs=0',
    'authenticationMs=-1',
    'authenticationMs',
    'streamWindowBytes=9999999',
  ])
    expect(typeof parseLimits([text])).toBe('string');
});
