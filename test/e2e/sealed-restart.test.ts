/** A gateway that is killed in the middle: what a device had begun is known to the next one, and never runs twice. */
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { concatBytes } from '../../channel/bytes.ts';
import { encodeAttachHead } from '../../channel/head.ts';
import type { InitiatorSession } from '../../channel/initiator.ts';
import type { MadeInvite } from '../../gateway/wire/admin/pairings.ts';
import { findInviteCode } from '../../identity/invite-code.ts';
import { connect, pair } from '../../clients/sdk/index.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import {
  exchange,
  openCall,
  pairRaw,
  rawSession,
  readAnswer,
  request,
  sendCall,
  textOf,
  type RawAnswer,
} from '../support/raw-device.ts';
import { readLog } from '../support/request-log.ts';
import { codeOf } from '../support/sealed-client.ts';
import { removeHome, temporaryHome } from '../support/service-here.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

async function newHome(): Promise<string> {
  const home = await temporaryHome();
  onTestFinished(() => removeHome(home));
  return home;
}

async function start(home: string, args: readonly string[] = []): Promise<TestServer> {
  const server = await startServer({ home, args });
  onTestFinished(() => server.stop());
  return server;
}

async function kill({ process: child }: TestServer): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

async function newInvite(server: TestServer): Promise<string> {
  const headers = { 'content-type': 'application/json', 'x-postern-run-token': await server.runToken() };
  const made = await fetch(`${server.url}/admin/invites`, { method: 'POST', headers, body: '{}' });
  return ((await made.json()) as MadeInvite).code;
}

async function attach(
  url: string,
  session: InitiatorSession,
  head: Uint8Array,
): Promise<Omit<RawAnswer, 'outerStatus'>> {
  const asked = openCall(session);
  const wire = concatBytes(asked.header, asked.request.sealHead(head, { last: true }));
  return readAnswer(asked, (await exchange(url, wire)).bytes);
}

const runs = async (server: TestServer, path: string): Promise<number> =>
  (await readLog(server, 'limit=100')).requests.filter((row) => row.path === path).length;

test('the same key after kill -9 is a repeat, and its answer is gone', async () => {
  const home = await newHome();
  const before = await start(home);
  const device = await pairRaw(before.url, findInviteCode(await newInvite(before))!);
  const session = await rawSession(before.url, device);
  const asked = request('POST', '/v1/begun-once', { json: {} });
  expect((await sendCall(`${before.url}/secure/call`, session, asked)).head?.status).toBe(404);
  const reference = { sessionId: session.terms.sessionId, callNumber: 0 };
  await until(async () => (await runs(before, '/v1/begun-once')) === 1);
  await kill(before);

  const after = await start(home);
  const url = `${after.url}/secure/call`;
  expect(await sendCall(url, session, asked)).toMatchObject({ outerStatus: 401, hint: 2 });
  const next = await rawSession(after.url, device);
  expect(next.terms.boot).not.toBe(session.terms.boot);
  const again = await sendCall(url, next, asked);
  expect(again.head?.status).toBe(409);
  expect(JSON.parse(textOf(again))).toMatchObject({
    error: { code: 'already_dispatched' },
    sid: Buffer.from(reference.sessionId).toString('base64url'),
    n: 0,
  });
  const gone = await attach(url, next, encodeAttachHead(reference, 0));
  expect([gone.head?.status, textOf(gone)]).toEqual([410, expect.stringContaining('records_gone')]);
  expect(await runs(after, '/v1/begun-once')).toBe(1);
});

test('the SDK sends nothing twice to another run of the gateway, and says why', async () => {
  const home = await newHome();
  const before = await start(home);
  // Its calls have a way of their own, since a connection has one fault.
  const proxy = await startFaultProxy(before.port);
  onTestFinished(() => proxy.close());
  const storage = { read: async () => undefined, write: async () => {}, erase: async () => {} };
  const paired = await pair(await newInvite(before), { storage, device: { name: 'a phone', platform: 'test' } });
  const viaProxy = (url: string): string => (url.endsWith('/call') ? url.replace(before.url, proxy.url) : url);
  const client = connect({ ...paired, urls: [before.url] }, { fetch: (url, init) => fetch(viaProxy(url), init) });
  onTestFinished(() => client.close());
  // The request arrives; its answer does not.
  proxy.begin({ localAddress: '127.0.0.1', nextFault: () => ({ do: 'freeze', direction: 'down', afterBytes: 0 }) });
  const post = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } };
  const outcome = codeOf(client.fetch('/v1/begun-by-sdk', post));
  await until(async () => proxy.struck.includes('freeze') && (await runs(before, '/v1/begun-by-sdk')) === 1);
  await kill(before);
  const after = await start(home, ['--port', `${before.port}`]);
  proxy.begin({ localAddress: '127.0.0.1', nextFault: () => ({ do: 'pass' }) });
  await proxy.drop();
  expect(await outcome).toBe('restarted');
  expect(await runs(after, '/v1/begun-by-sdk')).toBe(1);
});
