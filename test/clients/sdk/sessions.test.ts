import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { Operation, Transport } from '../../../clients/sdk/index.ts';
import { clientOf, codeOf, echo, post, start } from '../../support/sealed-client.ts';

async function listen(handle: RequestListener): Promise<string> {
  const server = createServer(handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('calls at the same time share one handshake, and a session that is over is followed by another', async () => {
  let nowMs = 0;
  const gateway = await start(echo);
  const client = clientOf(gateway, { now: () => nowMs });
  await Promise.all(Array.from({ length: 5 }, () => client.fetch('/a')));
  nowMs += 3_600_001;
  await client.fetch('/b');
  expect(gateway.seen.filter((seen) => seen === 'session')).toHaveLength(2);
});

test('the first address that is the gateway is found, and kept', async () => {
  const gateway = await start(echo);
  const stranger = await listen((_request, response) => void response.end('<html>'));
  const dead = await listen((request) => request.socket.destroy());
  const asked: string[] = [];
  const client = clientOf(
    gateway,
    { fetch: (url, init) => (asked.push(new URL(url).origin), fetch(url, init)) },
    gateway.newDevice([dead, 'file:///etc', stranger, `${gateway.url}/`]),
  );
  expect((await client.fetch('/a')).status).toBe(200);
  expect((await client.fetch('/b')).status).toBe(200);
  expect(asked).toEqual([dead, dead, stranger, gateway.url, gateway.url, gateway.url]);
});

test('when the path of a session breaks, its calls go over another one', async () => {
  const first = await start(echo);
  const device = first.newDevice();
  let isBroken = false;
  const client = clientOf(
    first,
    {
      fetch: (url, init) =>
        isBroken && url.startsWith('http://near')
          ? Promise.reject(new TypeError())
          : fetch(url.replace(/^http:..(near|far)/u, first.url), init),
    },
    { ...device, urls: ['http://near', 'http://far'] },
  );
  await client.fetch('/a');
  isBroken = true;
  expect((await client.fetch('/b', post)).status).toBe(200);
  // Which way leads there is found by a handshake.
  expect(first.seen).toEqual(['session', 'GET /a', 'session', 'POST /b']);
});

test('what no address reaches goes over another transport', async () => {
  const gateway = await start(echo);
  const carried: Operation[] = [];
  const relay: Transport = {
    async exchange(operation, body, signal) {
      carried.push(operation);
      const path = operation === 'pair-invite' ? '/pair-invite' : `/secure/${operation}`;
      return (await fetch(gateway.url + path, { method: 'POST', body, signal })).body!;
    },
  };
  const client = clientOf(gateway, { transports: [relay] }, gateway.newDevice([]));
  expect((await client.fetch('/a')).status).toBe(200);
  expect(carried).toEqual(['session', 'call']);
});

test.each([
  ['offline', [{ do: 'drop' }, { do: 'drop' }]],
  ['offline', [{ do: 'refuse', hint: 7 }]],
  ['refused', [{ do: 'refuse', hint: 1 }]],
  ['busy', [{ do: 'refuse', hint: 6 }]],
  ['incompatible', [{ do: 'refuse', hint: 5 }]],
  ['gateway_unavailable', [{ do: 'answer', bytes: refusalInTheClear('identity_unavailable') }]],
  ['gateway_unavailable', [{ do: 'answer', bytes: refusalInTheClear('channel_unavailable') }]],
  ['busy', [{ do: 'answer', bytes: refusalInTheClear('rate_limited') }]],
  ['offline', [{ do: 'answer', bytes: refusalInTheClear('of_another_program') }]],
  ['wrong_gateway', [{ do: 'flip', at: 700 }]],
  ['offline', [{ do: 'flip', at: 0 }]],
] as const)('a handshake ends as %s: %o', async (code, meddling) => {
  const gateway = await start(echo);
  gateway.meddle('session', ...meddling);
  const client = clientOf(gateway);
  expect(await codeOf(client.fetch('/x'))).toBe(code);
  expect((await client.fetch('/x')).status).toBe(200);
});

/** What a gateway answers that can read no envelope at the moment. */
function refusalInTheClear(code: string): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ error: { code, message: '', type: '', param: null } }));
}

test('a handshake over a connection that was old is made over a new one', async () => {
  const gateway = await start(echo);
  gateway.meddle('session', { do: 'drop' });
  expect((await clientOf(gateway).fetch('/x')).status).toBe(200);
});

test('a session that the gateway does not know is made again, once', async () => {
  const gateway = await start(echo);
  const client = clientOf(gateway);
  gateway.meddle('call', { do: 'refuse', hint: 2 }, undefined, { do: 'refuse', hint: 2 }, { do: 'refuse', hint: 2 });
  expect((await client.fetch('/x', post)).status).toBe(200);
  expect(await codeOf(client.fetch('/x', post))).toBe('refused');
  expect(gateway.seen).toEqual(['session', 'session', 'POST /x', 'session']);
});

test.each([
  [{ do: 'drop' }, ['session', 'POST /x']],
  [{ do: 'cut', afterBytes: 0 }, ['session', 'POST /x', 'POST /x', 'ATTACH 0']],
  [{ do: 'cut', afterBytes: 30 }, ['session', 'POST /x', 'ATTACH 0']],
] as const)('what has an effect has it once: %o', async (meddling, seen) => {
  const gateway = await start(echo);
  gateway.meddle('call', meddling);
  expect((await clientOf(gateway).fetch('/x', post)).status).toBe(200);
  expect(gateway.seen).toEqual(seen);
  expect(gateway.requests).toHaveLength(1);
});

test('a hint that is forged behind a request does not run it twice', async () => {
  const gateway = await start(echo);
  gateway.meddle('call', { do: 'forge', hint: 2 });
  expect(await codeOf(clientOf(gateway).fetch('/x', post))).toBe('answer_lost');
  expect(gateway.requests).toHaveLength(1);
});

test('the answer of the first attempt is read even if the way to it breaks again', async () => {
  const gateway = await start(echo);
  gateway.meddle('call', { do: 'cut', afterBytes: 0 }, undefined, { do: 'cut', afterBytes: 10 });
  expect((await clientOf(gateway).fetch('/x', post)).status).toBe(200);
  expect(gateway.seen).toEqual(['session', 'POST /x', 'POST /x', 'ATTACH 0', 'ATTACH 0']);
});

test('an ordinary conflict after a retry is an ordinary answer', async () => {
  const gateway = await start(() => ({ status: 409, body: '{"error":{"code":"other"}}' }));
  gateway.meddle('call', { do: 'drop' });
  const response = await clientOf(gateway).fetch('/x', post);
  expect([response.status, await response.text()]).toEqual([409, '{"error":{"code":"other"}}']);
});

test('nothing that has an effect is repeated at a gateway that was restarted', async () => {
  const gateway = await start(echo);
  const client = clientOf(gateway);
  await client.fetch('/x');
  gateway.restart();
  expect(await codeOf(client.fetch('/x', post))).toBe('restarted');
  expect((await client.fetch('/x', post)).status).toBe(200);
  gateway.restart();
  expect((await client.fetch('/y')).status).toBe(200);
  expect(gateway.requests.map(({ path, idempotencyKey }) => [path, idempotencyKey?.length])).toEqual([
    ['/x', undefined],
    ['/x', 16],
    ['/y', undefined],
  ]);
});

test('when no answer comes, only what has no effect is simply offline', async () => {
  const gateway = await start(echo);
  const client = clientOf(gateway);
  await client.fetch('/x');
  const drop = { do: 'drop' } as const;
  gateway.meddle('call', drop, drop, drop, drop);
  expect(await codeOf(client.fetch('/x', post))).toBe('unanswered');
  expect(await codeOf(client.fetch('/x'))).toBe('offline');
});

test('what was never sent is offline, whatever it would have done', async () => {
  const gateway = await start(echo);
  const client = clientOf(gateway);
  const named = clientOf(gateway, {}, gateway.newDevice([gateway.url.replace('127.0.0.1', 'localhost')]));
  for (const one of [client, named]) await one.fetch('/x');
  await gateway.close();
  for (const one of [client, named]) {
    // What goes into a connection from before may have been sent.
    expect(await codeOf(one.fetch('/x'))).toBe('offline');
    expect(await codeOf(one.fetch('/x', post))).toBe('offline');
  }
});

test.each([
  ['EHOSTUNREACH', 'read', 'unanswered'],
  ['EHOSTUNREACH', 'connect', 'offline'],
  ['ENOTFOUND', 'getaddrinfo', 'offline'],
  ['ECONNRESET', 'read', 'unanswered'],
])('%s of %s leaves what has an effect %s', async (code, syscall, outcome) => {
  const gateway = await start(echo);
  let isBroken = false;
  const failed = () => new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code, syscall }) });
  const client = clientOf(gateway, {
    fetch: (url, init) => (isBroken ? Promise.reject(failed()) : fetch(url, init)),
  });
  await client.fetch('/x');
  isBroken = true;
  expect(await codeOf(client.fetch('/x', post))).toBe(outcome);
  expect(await codeOf(client.fetch('/x'))).toBe('offline');
});

test.each([
  ['a handshake that fails', { do: 'forge', hint: 2 }, 'session', { do: 'drop' }],
  ['a handshake that is refused for now', { do: 'forge', hint: 2 }, 'session', { do: 'refuse', hint: 6 }],
  ['a hint to wait', { do: 'cut', afterBytes: 0 }, 'call', { do: 'refuse', hint: 6 }],
] as const)(
  'after an attempt that may have arrived, %s is no invitation to repeat it',
  async (_, first, where, then) => {
    const gateway = await start(echo);
    const client = clientOf(gateway);
    await client.fetch('/x');
    gateway.meddle('call', ...(where === 'call' ? [first, then] : [first]));
    // A handshake whose connection breaks is tried once more.
    if (where === 'session') gateway.meddle('session', then, then);
    expect(await codeOf(client.fetch('/x', post))).toBe('unanswered');
    expect(gateway.requests).toHaveLength(2);
  },
);

test.each([
  ['busy', 4],
  ['busy', 6],
  ['offline', 7],
] as const)(
  'that nothing was done (%s) is not believed of hint %i, which may stand before an answer',
  async (code, hint) => {
    const gateway = await start(echo);
    const client = clientOf(gateway);
    for (const meddling of [
      { do: 'refuse', hint },
      { do: 'forge', hint },
    ] as const) {
      gateway.meddle('call', meddling, meddling);
      expect(await codeOf(client.fetch('/x', post))).toBe('unanswered');
      expect(await codeOf(client.fetch('/x'))).toBe(code);
    }
    expect(gateway.requests.map(({ method }) => method)).toEqual(['POST', 'GET']);
  },
);
