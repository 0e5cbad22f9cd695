import { mkdtemp, rm } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { asRoutingId } from '../../channel/keys.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { deriveRelayTag, tagDay } from '../../channel/relay-tag.ts';
import { setProcessTimer } from '../../core/timer.ts';
import { createLiveRequests } from '../../gateway/live-requests.ts';
import { untoldPeers } from '../../gateway/peer-process.ts';
import { createRecorder } from '../../gateway/request-log/recorder.ts';
import type { Route, Services } from '../../gateway/route.ts';
import { builtInAgentOnly } from '../../gateway/agent-directory.ts';
import { createListener } from '../../gateway/listener.ts';
import { createInnerCalls } from '../../gateway/sealed/inner-request.ts';
import { createGateway } from '../../gateway/server.ts';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import { OP } from '../../relay/wire/op.ts';
import { createKey, setSettings, type MadeKey } from '../support/access-keys.ts';
import { newInvite } from '../support/invites.ts';
import { pairRaw, rawSession, request, startCall } from '../support/raw-device.ts';
import { rawConnection, rawRequest } from '../support/raw-connection.ts';
import { keysOfMemory } from '../support/registry.ts';
import { join, startTestRelay } from '../support/relay-here.ts';
import { relayShim } from '../support/relay-shim.ts';
import { endless } from '../support/request-log.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';
import { removeHome, startServiceHere, temporaryHome } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

const toEnd: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of toEnd.splice(0).toReversed()) await end();
});

describe('A revoked key that hangs on by what it began', () => {
  let home: string;
  let server: TestServer;
  let key: MadeKey;

  beforeEach(async () => {
    home = await mkdtemp(joinPath(tmpdir(), 'postern-revocation-'));
    toEnd.push(() => rm(home, { recursive: true, force: true }));
    await setSettings(home, { 'access.requireKeyOnLoopback': true });
    key = await createKey(home);
    server = await startServer({ home });
    toEnd.push(() => server.stop());
  });

  const authorized = () => ({ authorization: `Bearer ${key.token}` });
  const stream = () =>
    rawRequest({
      path: '/v1/chat/completions',
      headers: authorized(),
      body: { model: 'foundation', ...endless, stream: true },
    });
  const admin = async (path: string, init: RequestInit = {}) =>
    fetch(server.url + path, { ...init, headers: { 'x-postern-run-token': await server.runToken() } });
  const inflight = async () => ((await (await admin('/admin/status')).json()) as { inflight: object }).inflight;
  const models = () => fetch(`${server.url}/v1/models`, { headers: authorized() });

  test('eight streams on one connection that was cut do not hold up the command that revokes their key', async () => {
    const { socket, receives } = await rawConnection(server.port);
    socket.write(stream().repeat(8));
    await receives(/data: /);
    socket.resetAndDestroy();
    const revoked = await runCli(['keys', 'revoke', key.id], { SVC_HOME: home });
    expect(revoked).toMatchObject({ code: 0, stderr: `Revoked: ${key.id}.\n` });
    expect(await inflight()).toEqual({});
    expect((await models()).status).toBe(401);
  });

  test('streams that nobody reads, as many as the key may have, do not hold it up either', async () => {
    const connections = await Promise.all(Array.from({ length: 16 }, () => rawConnection(server.port)));
    for (const { socket } of connections) socket.pause().write(stream());
    await until(async () => (await models()).status === 429);
    const answer = await admin('/admin/keys', { method: 'DELETE' });
    expect(await answer.json()).toMatchObject({ revoked: [key.id] });
    expect(await inflight()).toEqual({});
    expect((await models()).status).toBe(401);
    for (const { socket } of connections) socket.destroy();
  });

  test('the key is refused, and what it began ends, even where the database cannot be written', async () => {
    const { socket, receives, all } = await rawConnection(server.port);
    socket.write(stream());
    await receives(/data: /);
    const other = new Sqlite(joinPath(home, 'state.db'));
    other.exec('BEGIN IMMEDIATE');
    const refused = await admin(`/admin/keys/${key.id}`, { method: 'DELETE' });
    expect([refused.status, await refused.json()]).toEqual([
      202,
      expect.objectContaining({ durable: false, reason: 'storage_busy' }),
    ]);
    expect((await models()).status).toBe(401);
    other.exec('ROLLBACK');
    other.close();
    expect(await receives(/authentication_error/)).toMatch(/access key/);
    socket.end();
    await all();
    expect(await (await admin(`/admin/keys/${key.id}`, { method: 'DELETE' })).json()).toMatchObject({
      already: true,
      durable: true,
    });
    expect((await models()).status).toBe(401);
  });
});

describe('A revocation that waits for the unwilling', () => {
  /** Two handlers as no handler should be. */
  const common = {
    access: 'inference',
    maxBodyBytes: 0,
    clientPrefix: '',
    summary: '',
  } as const;
  const never: Route = { ...common, method: 'GET', path: '/never', handle: () => new Promise(() => undefined) };
  const deaf: Route = {
    ...common,
    method: 'GET',
    path: '/deaf',
    handle: () => ({
      body: (async function* () {
        yield 'begun';
        await new Promise(() => undefined);
      })(),
    }),
  };

  test('handlers that ignore that they are to stop are cut off, and the revocation says how many', async () => {
    const registry = keysOfMemory(Date.now);
    const live = createLiveRequests({ setTimer: setProcessTimer });
    registry.onRevocation((kids) => live.end(kids));
    const { token, key } = registry.create({});
    const { handle } = createGateway({
      routes: [never, deaf],
      services: { keys: { open: async () => registry } } as unknown as Services,
      guard: { hostnames: [], allowedOrigins: ['*'], machineNames: () => [] },
      peers: untoldPeers,
      agents: builtInAgentOnly,
      inner: createInnerCalls(),
      access: { requireKeyOnLoopback: true, requestsPerMinute: 600, requestsAtOnce: 16 },
      live,
      runToken: 'the token of this run',
      recorder: createRecorder({ now: Date.now, elapsed: () => 0, keepBodies: false, onEntry: () => undefined }),
      onRefusal: () => undefined,
      onError: () => undefined,
      warn: () => {},
    });
    const listener = createListener({ setTimer: setProcessTimer });
    const { port } = await listener.listen({ hosts: ['127.0.0.1'], port: 0, handle });
    const asked = ['/never', '/deaf'].map((path) => {
      const sent = httpRequest({ port, path, host: '127.0.0.1', headers: { 'x-api-key': token } });
      sent.on('response', (response) => response.on('error', () => undefined).resume());
      sent.on('error', () => undefined).end();
      return new Promise((resolve) => void sent.once('close', resolve));
    });
    await until(() => live.count(key.kid) === 2);
    expect(await registry.revoke(key.kid)).toEqual({ result: 'revoked', cut: 2, isDurable: true });
    await Promise.all(asked);
    expect([live.count(key.kid), listener.counts()]).toEqual([0, { requests: 0, sockets: 0 }]);
    await listener.close();
  });
});

describe('A revoked device that hangs on at a relay', () => {
  test('neither a stream through it that nobody reads nor one that is half sent keeps its device, and it is let in no more', async () => {
    const home = await temporaryHome();
    toEnd.push(() => removeHome(home));
    const relay = await startTestRelay({ handshakesPerSecond: 1000 });
    toEnd.push(() => relay.close());
    const service = await startServiceHere(home, { 'relay.urls': [relay.url] });
    toEnd.push(() => service.stop(AbortSignal.abort()));
    await until(() => service.running.relays.list()[0]?.phase === 'connected');
    const routingId = asRoutingId(service.running.relays.list()[0]!.routingId);
    const device = await pairRaw(service.url, await newInvite(service));
    const crypto = gatewayCrypto('node');
    const tagOf = (days: number) =>
      deriveRelayTag(crypto, device.grant.psk, { routingId, day: tagDay(Date.now()) + days });
    const joined = await until(() => join(relay.url, routingId, tagOf(0)).catch(() => undefined));
    const shim = await relayShim(() => joined);
    toEnd.push(() => shim.close());
    const session = await rawSession(shim.url, device);
    const body = { model: 'foundation', ...endless, stream: true };
    const asked = request('POST', '/v1/chat/completions', { json: body });
    const { events } = await startCall(`${shim.url}/secure/call`, session, asked);
    await events.next();
    // A call of which the beginning was sent, and nothing follows.
    const silent = joined.open(OP.call);
    await silent.write(new Uint8Array([1]));
    const revoked = await service.cli('devices', 'revoke', device.grant.deviceId);
    expect(revoked).toMatchObject({ code: 0, stderr: expect.stringMatching(/Revoked: .*\.\n$/) });
    expect(await joined.closed).toMatchObject({ code: RELAY_CODE.revoked });
    // What a relay tells everyone whom it does not know.
    for (const days of [-1, 0, 1]) {
      await expect(join(relay.url, routingId, tagOf(days))).rejects.toMatchObject({ code: RELAY_CODE.offline });
    }
    expect(service.running.channelServer.counts().calls).toBe(0);
    expect([...service.running.inference.status().inflight]).toEqual([]);
  });
});
