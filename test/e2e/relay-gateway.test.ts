/** A whole service behind a relay: who comes in there, what they may do, and what becomes of it when they may not. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { decodeAbortReason } from '../../channel/head.ts';
import { deriveInviteKeys } from '../../channel/invite.ts';
import { asRoutingId, type RoutingId } from '../../channel/keys.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { deriveRelayTag, tagDay } from '../../channel/relay-tag.ts';
import { describeInvite, pair } from '../../clients/sdk/index.ts';
import { relayOfInvite } from '../../clients/sdk/relay.ts';
import { resolveSettings } from '../../service/settings.ts';
import type { RelayResource } from '../../gateway/relays.ts';
import { routes } from '../../gateway/routes.ts';
import { findGatewayFacts, HOME_PATH } from '../../identity/pairing.ts';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import type { JoinedRelay } from '../../relay/wire/join-relay.ts';
import { OP } from '../../relay/wire/op.ts';
import { newInvite } from '../support/invites.ts';
import { endless } from '../support/request-log.ts';
import {
  pairRaw,
  rawSession,
  request,
  sendCall,
  startCall,
  startRawSession,
  textOf,
  type PairedRaw,
} from '../support/raw-device.ts';
import { collect, join, startTestRelay, type TestRelay } from '../support/relay-here.ts';
import { relayShim } from '../support/relay-shim.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

const crypto = gatewayCrypto('node');

let home: string;
let relay: TestRelay;
let service: ServiceHere;
let routingId: RoutingId;
const toEnd: (() => unknown)[] = [];

beforeAll(async () => {
  home = await temporaryHome();
  relay = await startTestRelay({ handshakesPerSecond: 1000 });
  service = await startServiceHere(home, { 'relay.urls': [relay.url] });
  await connected();
  routingId = asRoutingId(service.running.relays.list()[0]!.routingId);
});
afterEach(async () => {
  for (const end of toEnd.splice(0).toReversed()) await end();
});
afterAll(async () => {
  await service?.stop();
  await relay?.close();
  await removeHome(home);
});

const connected = () => until(() => service.running.relays.list()[0]?.phase === 'connected');
const devices = async () => (await service.running.identity.openPairings()).devices;

async function joinWith(tag: Uint8Array): Promise<JoinedRelay> {
  const joined = await join(relay.url, routingId, tag);
  toEnd.push(() => joined.close());
  return joined;
}
async function wayWith(tag: Uint8Array): Promise<string> {
  const joined = await joinWith(tag);
  const shim = await relayShim(() => joined);
  toEnd.push(() => shim.close());
  return shim.url;
}
/** An invite of this gateway that knows the relay, as `postern invite` makes it. */
const invite = () => newInvite(service, { routingIds: [routingId] });
const tagToday = ({ grant }: PairedRaw) => deriveRelayTag(crypto, grant.psk, { routingId, day: tagDay(Date.now()) });

async function pairThroughRelay(): Promise<PairedRaw> {
  const code = await invite();
  return pairRaw(await wayWith(deriveInviteKeys(crypto, code.secret).relayTag(routingId)), code);
}

test('a device is paired through it, and then calls through it, with the tag of the day', async () => {
  const device = await pairThroughRelay();
  expect(device.grant.relays).toEqual([{ origin: relay.url, routingId }]);
  const url = await until(() => wayWith(tagToday(device)).catch(() => undefined));
  const session = await rawSession(url, device);
  const answer = await sendCall(`${url}/secure/call`, session, request('GET', '/v1/models'));
  expect({ status: answer.head?.status, text: textOf(answer) }).toEqual({
    status: 200,
    text: expect.stringContaining('foundation'),
  });
  expect((await devices()).find(device.grant.deviceId)).toMatchObject({ lastPath: 'relay' });
});

test('a device that was paired without it learns of it by asking, and nobody else does', async () => {
  const device = await pairRaw(service.url, await newInvite(service));
  const session = await rawSession(service.url, device);
  const answer = await sendCall(`${service.url}/secure/call`, session, request('GET', HOME_PATH));
  const { gatewayName, gatewayId } = device.grant;
  expect(findGatewayFacts(answer.body)).toEqual({
    gatewayName,
    gatewayId,
    urls: [],
    relays: [{ origin: relay.url, routingId }],
  });
  for (const prefix of ['', '/v1']) {
    expect((await fetch(`${service.url}${prefix}${HOME_PATH}`)).status).toBe(404);
  }
});

test('a device that the owner says no to is told so, and the invite opens no way any more', async () => {
  const asked = await fetch(`${service.url}/admin/invites`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ needs_approval: true }),
  });
  const { code } = (await asked.json()) as { code: string };
  const pairing = pair(code, {
    crypto,
    device: { name: 'a phone', platform: 'test' },
    storage: { read: async () => undefined, write: async () => undefined, erase: async () => undefined },
    transports: relayOfInvite(code, { crypto }),
  });
  const failure = pairing.catch((error: unknown) => error);
  const waiting = () => service.running.approvals.list()[0];
  service.running.approvals.decide((await until(waiting)).id, 'denied');
  expect(await failure).toMatchObject({ code: 'pairing_denied' });
  const tag = deriveInviteKeys(crypto, describeInvite(code).code.secret).relayTag(routingId);
  await until(async () => (await joinWith(tag).catch(() => 'refused')) === 'refused');
}, 30_000);

test('an invite’s tag pairs, and opens no session of a device that is paired', async () => {
  const device = await pairThroughRelay();
  const code = await invite();
  const joined = await joinWith(deriveInviteKeys(crypto, code.secret).relayTag(routingId));
  expect(() => joined.open(OP.session)).not.toThrow();
  const stream = joined.open(OP.session);
  await expect(collect(stream.answer)).rejects.toMatchObject({ code: RELAY_CODE.notAllowed });
  expect((await devices()).find(device.grant.deviceId)).toBeDefined();
});

test('it is let in nowhere but where a device is: neither the owner’s routes, nor a code', async () => {
  const device = await pairThroughRelay();
  const url = await until(() => wayWith(tagToday(device)).catch(() => undefined));
  const session = await rawSession(url, device);
  const owners = routes.filter(({ access }) => access === 'admin' || access === 'channel');
  expect(owners.length).toBeGreaterThan(15);
  for (const { method, path } of owners) {
    const asked = request(method, path.replace(':id', 'x').replace('*', 'x'), method === 'GET' ? {} : { json: {} });
    const answer = await sendCall(`${url}/secure/call`, session, asked);
    expect({ method, path, status: answer.head?.status }).toEqual({ method, path, status: 403 });
  }
  const joined = await joinWith(tagToday(device));
  for (const op of [OP.discoveryOpen, OP.discoveryProve, 0x44]) {
    const stream = joined.open(op);
    await expect(collect(stream.answer)).rejects.toMatchObject({ code: RELAY_CODE.notAllowed });
  }
});

test('a request that is longer than its kind may be ends its stream, and nothing else', async () => {
  const device = await pairThroughRelay();
  const joined = await until(() => joinWith(tagToday(device)).catch(() => undefined));
  const stream = joined.open(OP.session);
  const writing = stream.write(new Uint8Array(9 * 1024)).catch(() => undefined);
  await expect(collect(stream.answer)).rejects.toMatchObject({ code: RELAY_CODE.internal });
  await writing;
  const shim = await relayShim(() => joined);
  toEnd.push(() => shim.close());
  expect(await startRawSession(shim.url, device)).toMatchObject({ session: expect.anything() });
});

test('revoked in the middle of a stream: it says so, sealed, and then the relay lets nobody in with its tags', async () => {
  const device = await pairThroughRelay();
  const url = await until(() => wayWith(tagToday(device)).catch(() => undefined));
  const session = await rawSession(url, device);
  const asked = request('POST', '/v1/chat/completions', { json: { model: 'foundation', ...endless, stream: true } });
  const { events } = await startCall(`${url}/secure/call`, session, asked);
  expect((await events.next()).value).toMatchObject({ type: 'head' });
  const idle = await joinWith(tagToday(device));
  await (await devices()).revoke(device.grant.deviceId);
  const types: string[] = [];
  let reason = '';
  for await (const event of events) {
    types.push(event.type);
    if (event.type === 'abort') reason = decodeAbortReason(event.data).code;
  }
  expect({ last: types.at(-1), reason }).toEqual({ last: 'abort', reason: 'revoked' });
  expect(await idle.closed).toMatchObject({ code: RELAY_CODE.revoked });
  const day = tagDay(Date.now());
  for (const other of [day - 1, day, day + 1]) {
    const tag = deriveRelayTag(crypto, device.grant.psk, { routingId, day: other });
    await expect(join(relay.url, routingId, tag)).rejects.toMatchObject({ code: RELAY_CODE.offline });
  }
});

test('its owner sees how it is: /health, status, and "postern relay status"', async () => {
  const connectedNow = { origin: relay.url, state: 'connected', error: null, contested: false };
  const health = (await (await fetch(`${service.url}/health`)).json()) as { relays: RelayResource[] };
  expect(health.relays).toEqual([expect.objectContaining(connectedNow)]);
  expect(await service.cli('status')).toMatchObject({
    stdout: expect.stringContaining(`relay ${relay.url}  connected`),
  });
  const json = await service.cli('relay', 'status', '--json');
  expect({ code: json.code, relays: JSON.parse(json.stdout) as unknown }).toEqual({
    code: 0,
    relays: [expect.objectContaining({ ...connectedNow, routing_id: expect.stringMatching(/^[a-z2-7]{24}$/) })],
  });
  const words = await service.cli('relay', 'status');
  expect(words.stdout).toContain(health.relays[0]!.routing_id);
});

test('an invite that the owner asks for carries the way through it', async () => {
  const made = (await (
    await fetch(`${service.url}/admin/invites`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
  ).json()) as { code: string; urls: string[]; relay: RelayResource };
  expect(made).toMatchObject({ urls: [], relay: { origin: relay.url, state: 'connected' } });
});

test('the way is there again when the relay is, and says meanwhile why not', async () => {
  const { port } = relay;
  await relay.close();
  await until(() => service.running.relays.list()[0]?.lastError !== undefined);
  const away = await service.cli('relay', 'status');
  expect(away.code).toBe(1);
  expect(away.stdout).toMatch(/not connected|connecting; before/);
  relay = await startTestRelay({ handshakesPerSecond: 1000 }, { port });
  await connected();
  const device = await pairThroughRelay();
  expect(device.grant.deviceId).toMatch(/./);
});

test('without one, status says how to take one; with an address that is none, nothing starts', async () => {
  const other = await temporaryHome();
  toEnd.push(() => removeHome(other));
  const alone = await startServiceHere(other);
  toEnd.push(() => alone.stop());
  expect(await alone.cli('relay', 'status')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('postern serve --relay'),
  });
  const many = Array.from({ length: 5 }, (_, at) => `wss://relay${at}.example.com`);
  expect(() => resolveSettings({ flags: { 'relay.urls': many }, environment: {}, file: {} })).toThrow(/relay\.urls/);
  const wrong = ['https://relay.example.com', 'wss://relay.example.com/path', 'wss://Relay.example.com', 'relay', ''];
  for (const url of [...wrong, 'wss://relay.example.com:443', 'wss://me:secret@relay.example.com']) {
    const resolve = () => resolveSettings({ flags: { 'relay.urls': [url] }, environment: {}, file: {} });
    expect(resolve, url).toThrow(/relay\.urls: (expected addresses such as|leave out the port)/);
    expect(resolve, url).not.toThrow(/secret/);
  }
});
