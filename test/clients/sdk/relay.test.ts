import { expect, onTestFinished, test, vi } from 'vitest';
import type { PairedDevice, PosternClient } from '../../../clients/sdk/index.ts';
import { pair } from '../../../clients/sdk/index.ts';
import { relayOfInvite, relaysOf, type RelayOptions } from '../../../clients/sdk/relay.ts';
import { formatInviteCode } from '../../../identity/invite-code.ts';
import { decodeFrame, type Frame } from '../../../relay/wire/frame.ts';
import { OP } from '../../../relay/wire/op.ts';
import { clientOf, codeOf, echo, post, sse, tap } from '../../support/sealed-client.ts';
import { relaysFor, startRelayed, webSocket, type RelayedGateway } from '../../support/relayed-gateway.ts';
import { createFakeTime } from '../../core/fake-time.ts';
import { until } from '../../support/wait.ts';

function relayedClient(
  { gateway, device }: RelayedGateway,
  options: RelayOptions = {},
  known: PairedDevice = device,
): PosternClient {
  return clientOf(gateway, { ...options, transports: relaysFor(known, options) }, known);
}

/** Counts the connections that are opened. */
function counted(): { readonly webSocket: typeof webSocket; readonly opened: Opened[] } {
  const opened: Opened[] = [];
  return {
    opened,
    webSocket(url, protocol) {
      const socket = webSocket(url, protocol);
      const one: Opened = { isClosed: false, frames: [] };
      socket.addEventListener('message', ({ data }) =>
        one.frames.push(decodeFrame(new Uint8Array(data as ArrayBuffer))),
      );
      socket.addEventListener('close', () => (one.isClosed = true));
      opened.push(one);
      return socket;
    },
  };
}

interface Opened {
  isClosed: boolean;
  readonly frames: Frame[];
}

test('an invite whose only way is a relay makes a device', async () => {
  const { invite, streams, gateway } = await startRelayed(echo);
  const text = formatInviteCode(invite);
  const storage = { read: async () => undefined, write: async () => {}, erase: async () => {} };
  const transports = relayOfInvite(text, { webSocket });
  const device = await pair(text, { device: { name: 'a phone', platform: 'test' }, storage, transports });
  expect(device).toMatchObject({ deviceId: 'device-1', gatewayId: gateway.gatewayId });
  expect(streams.map(({ op }) => op)).toEqual([OP.invite, OP.call]);
  // Pairing again over the same transports: they begin anew.
  expect(await codeOf(pair(text, { device: { name: 'another', platform: 'test' }, storage, transports }))).toBe(
    'invite_used',
  );
});

test('calls and streams go through it, and nothing is connected before', async () => {
  const relayed = await startRelayed((request) => (request.path === '/sse' ? sse(request) : echo(request)));
  const { opened, webSocket: counting } = counted();
  const client = relayedClient(relayed, { webSocket: counting });
  expect([client.path, opened.length]).toEqual([undefined, 0]);
  expect(await (await client.fetch('/a?b=c', { ...post, body: 'x'.repeat(700_000) })).json()).toMatchObject({
    path: '/a',
    query: 'b=c',
    body: 'x'.repeat(700_000),
  });
  expect(await (await client.fetch('/sse', post)).text()).toContain('w4');
  expect(client.path).toEqual({ kind: 'relay', url: relayed.relay.origin });
  expect(relayed.streams.map(({ op }) => op)).toEqual([OP.session, OP.call, OP.call]);
  expect(opened).toHaveLength(1);
});

test('50 calls at once share one connection, beyond what the relay allows at the same time', async () => {
  const relayed = await startRelayed(echo, { limits: { streamsPerConnection: 8 } });
  const { opened, webSocket: counting } = counted();
  const client = relayedClient(relayed, { webSocket: counting });
  const paths = Array.from({ length: 50 }, (_, at) => `/${at}`);
  const answers = await Promise.all(paths.map(async (path) => (await client.fetch(path, post)).json()));
  expect(answers.map((answer) => (answer as { path: string }).path)).toEqual(paths);
  expect(opened).toHaveLength(1);
  expect(relayed.gateway.requests).toHaveLength(50);
});

test('a stream goes on when the relay is killed and comes back, with no byte lost or doubled', async () => {
  const { body, push } = tap();
  const relayed = await startRelayed(() => ({ body }));
  const client = relayedClient(relayed);
  const reader = (await client.fetch('/x', post)).body!.getReader();
  let text = '';
  const readTo = async (end: string): Promise<void> => {
    while (!text.endsWith(end)) text += new TextDecoder().decode((await reader.read()).value);
  };
  for (let at = 0; at < 20; at++) push(`<${at}>`);
  await readTo('<19>');
  await relayed.killRelay();
  for (let at = 20; at < 40; at++) push(`<${at}>`);
  await relayed.restartRelay();
  await readTo('<39>');
  expect(text).toBe(Array.from({ length: 40 }, (_, at) => `<${at}>`).join(''));
  expect(relayed.gateway.requests).toHaveLength(1);
});

test('a relay that is being shut down lets streams finish, and what is new joins again', async () => {
  const { body, push } = tap();
  const relayed = await startRelayed((request) => (request.path === '/slow' ? { body } : echo(request)));
  const { opened, webSocket: counting } = counted();
  const client = relayedClient(relayed, { webSocket: counting });
  const reader = (await client.fetch('/slow', post)).body!.getReader();
  push('one');
  await reader.read();
  const stop = new AbortController();
  const drained = relayed.relay.drain(stop.signal);
  await until(() => opened[0]!.frames.some(({ type }) => type === 'goaway'));
  await relayed.restartRelay();
  expect((await client.fetch('/new', post)).status).toBe(200);
  expect([opened.length, opened[0]!.isClosed]).toEqual([2, false]);
  push('two');
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('two');
  await reader.cancel();
  stop.abort();
  await drained;
});

test('a gateway that is away from its relay is told apart from a network that is', async () => {
  const relayed = await startRelayed(echo);
  await relayed.leaveRelay();
  const client = relayedClient(relayed);
  const failure = await client.fetch('/x', post).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'gateway_away', message: expect.stringContaining('or the relay says so') });
  await relayed.killRelay();
  expect(await codeOf(relayedClient(relayed).fetch('/x', post))).toBe('offline');
});

test('what was to go through a relay that is gone was never sent', async () => {
  const relayed = await startRelayed(echo);
  const { opened, webSocket: counting } = counted();
  const client = relayedClient(relayed, { webSocket: counting });
  await (await client.fetch('/x')).text();
  await relayed.killRelay();
  await until(() => opened[0]!.isClosed);
  expect(await codeOf(client.fetch('/x', post))).toBe('offline');
});

test('answers that have come make room for others, though nobody has read them', async () => {
  const relayed = await startRelayed(echo, { limits: { streamsPerConnection: 1 } });
  const time = createFakeTime(Date.now());
  const client = relayedClient(relayed, { now: time.now, setTimer: time.setTimer });
  const answers = await Promise.all(['/a', '/b', '/c', '/d'].map((path) => client.fetch(path, post)));
  for (const answer of answers) expect(await answer.json()).toMatchObject({ method: 'POST' });
});

test('a call for which there is no room in time was never sent', async () => {
  const relayed = await startRelayed(() => ({ body: tap().body }), { limits: { streamsPerConnection: 2 } });
  const time = createFakeTime(Date.now());
  const client = relayedClient(relayed, { now: time.now, setTimer: time.setTimer });
  const reading = [await client.fetch('/a', post), await client.fetch('/b', post)];
  let code: unknown;
  void codeOf(client.fetch('/c', post)).then((ended) => (code = ended));
  await until(() => (time.advance(100), code));
  expect([code, relayed.gateway.requests.length]).toEqual(['relay_busy', 2]);
  // Each that ends makes room: the answer, and the word that it is over.
  await reading[0]!.body!.cancel();
  expect((await client.fetch('/d', post)).status).toBe(200);
});

test('a relay that cannot be joined is not asked again at once, and joined when it can be', async () => {
  const relayed = await startRelayed(echo);
  await relayed.killRelay();
  let nowMs = Date.now();
  const { opened, webSocket: counting } = counted();
  const client = relayedClient(relayed, { webSocket: counting, now: () => nowMs });
  const askTenTimes = async (): Promise<void> => {
    for (let at = 0; at < 10; at++) expect(await codeOf(client.fetch('/x', post))).toBe('offline');
  };
  await askTenTimes();
  expect(opened).toHaveLength(1);
  nowMs += 500;
  await askTenTimes();
  expect(opened).toHaveLength(2);
  await relayed.restartRelay();
  nowMs += 1000;
  expect((await client.fetch('/x', post)).status).toBe(200);
});

test('a device that the relay does not know hears what that may mean', async () => {
  const relayed = await startRelayed(echo);
  const late = relayedClient(relayed, { now: () => Date.now() + 5 * 86_400_000 });
  expect(await codeOf(late.fetch('/x'))).toBe('gateway_away');
  expect(relayed.streams).toEqual([]);
  expect((await relayedClient(relayed).fetch('/x')).status).toBe(200);
});

test('aborting resets the stream at the gateway', async () => {
  const relayed = await startRelayed(() => ({ body: tap().body }));
  const client = relayedClient(relayed);
  const stop = new AbortController();
  await client.fetch('/x', { ...post, signal: stop.signal });
  const stream = relayed.streams.at(-1)!;
  expect(stream.signal.aborted).toBe(false);
  stop.abort();
  await until(() => stream.signal.aborted);
  await until(() => relayed.gateway.requests[0]!.signal.aborted);
  expect(relayed.gateway.seen.at(-1)).toBe('CANCEL');
});

test('a closed client tells the gateway which calls are over, and ends the connection', async () => {
  const relayed = await startRelayed(() => ({ body: tap().body }));
  const { opened, webSocket: counting } = counted();
  const client = relayedClient(relayed, { webSocket: counting });
  await client.fetch('/x', post);
  client.close();
  await until(() => relayed.gateway.requests[0]!.signal.aborted);
  await until(() => opened[0]!.isClosed);
  expect(await codeOf(client.fetch('/x'))).toBe('closed');
  expect(opened).toHaveLength(1);
});

test('who reads slowly is sent no more than a stream may hold, and others are not held up', async () => {
  async function* much(): AsyncGenerator<Uint8Array> {
    for (let count = 0; count < 100; count++) yield new Uint8Array(60_000);
  }
  const relayed = await startRelayed((request) => (request.path === '/much' ? { body: much() } : echo(request)));
  const { opened, webSocket: counting } = counted();
  const client = relayedClient(relayed, { webSocket: counting });
  const response = await client.fetch('/much', post);
  const reader = response.body!.getReader();
  await reader.read();
  for (let at = 0; at < 20; at++) expect((await client.fetch('/quick', post)).status).toBe(200);
  const received = opened[0]!.frames.map((frame) => (frame.type === 'data' ? frame.bytes.length : 0));
  expect(received.reduce((sum, length) => sum + length)).toBeLessThan(500_000);
  let length = 60_000;
  for (let next = await reader.read(); !next.done; next = await reader.read()) length += next.value.length;
  expect(length).toBe(6_000_000);
});

test('a connection that nobody needed for a minute is ended, and made again', async () => {
  const relayed = await startRelayed((request) => (request.path === '/slow' ? { body: tap().body } : echo(request)));
  const { opened, webSocket: counting } = counted();
  const time = createFakeTime(Date.now());
  const client = relayedClient(relayed, { webSocket: counting, now: time.now, setTimer: time.setTimer });
  await (await client.fetch('/x')).text();
  time.advance(30_000);
  await (await client.fetch('/x')).text();
  expect(opened).toHaveLength(1);
  // What was cancelled is no use either, nor is the word that it was.
  await (await client.fetch('/slow', post)).body!.cancel();
  await until(() => relayed.gateway.seen.includes('CANCEL'));
  await until(() => (time.advance(1000), opened[0]!.isClosed));
  expect((await client.fetch('/x')).status).toBe(200);
  expect(opened).toHaveLength(2);
});

test('where there is no WebSocket, it is said what to pass', async () => {
  vi.stubGlobal('WebSocket', undefined);
  onTestFinished(() => void vi.unstubAllGlobals());
  const { device, invite } = await startRelayed(echo);
  for (const make of [() => relaysOf(device), () => relayOfInvite(invite)]) expect(make).toThrow(/"ws"/u);
  expect(relaysOf({ ...device, relays: [] })).toEqual([]);
  expect(relaysOf({ ...device, relays: [{ origin: 'https://x', rid: device.relays[0]!.rid }] })).toEqual([]);
  expect(relaysOf({ ...device, relays: [{ origin: 'wss://x', rid: 'AAAA' }] })).toEqual([]);
});
