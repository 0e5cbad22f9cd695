import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket, type ClientOptions } from 'ws';
import { MAX_WAITING_MESSAGES } from '../../gateway/http/web-socket.ts';
import { createKey, setSettings, type MadeKey } from '../support/access-keys.ts';
import { endless } from '../support/request-log.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

let home: string;
let server: TestServer;
let key: MadeKey;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-ws-'));
  await setSettings(home, { 'access.requireKeyOnLoopback': true, 'access.requestsPerMinute': 40 });
  key = await createKey(home);
  server = await startServer({ home });
});
afterAll(async () => {
  await server.stop();
  await rm(home, { recursive: true, force: true });
});

const { schema } = endless.response_format.json_schema;
const LONG = {
  type: 'response.create',
  model: 'foundation',
  input: 'Hello',
  text: { format: { type: 'json_schema', name: 'long', schema } },
};

function open({ token }: { readonly token: string }, options: ClientOptions = {}, path = '/v1/responses'): WebSocket {
  const socket = new WebSocket(server.url.replace('http', 'ws') + path, {
    ...options,
    headers: { authorization: `Bearer ${token}`, ...options.headers },
  });
  socket.on('error', () => undefined);
  return socket;
}

/** @returns the status with which a connection is refused */
async function refusal(socket: WebSocket): Promise<number | undefined> {
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode?: number }];
  return response.statusCode;
}

const next = async (socket: WebSocket) => JSON.parse(String((await once(socket, 'message'))[0])) as { type: string };
const inflight = async () => {
  const headers = { 'x-postern-run-token': await server.runToken() };
  const status = (await (await fetch(`${server.url}/admin/status`, { headers })).json()) as { inflight: object };
  return Object.keys(status.inflight).length;
};

describe('Getting more over a WebSocket than over HTTP', () => {
  test('nobody opens one without a valid key', async () => {
    expect(await refusal(open({ token: 'svc-v1.no' }))).toBe(401);
  });

  test.each(['https://a-page.example', 'null', 'http://127.0.0.1:9'])('no page opens one: %s', async (origin) => {
    expect(await refusal(open({ token: await server.runToken() }, { headers: { origin } }))).toBeOneOf([401, 403]);
    const headers = { origin, 'x-postern-run-token': await server.runToken() };
    expect(await refusal(open({ token: 'any' }, { headers }))).toBe(403);
  });

  test('there is none at another address, and none for another protocol', async () => {
    expect(await refusal(open(key, {}, '/v1/models'))).toBe(200);
    const plain = await fetch(`${server.url}/v1/responses`, { headers: { 'x-api-key': key.token } });
    expect([plain.status, plain.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('a key’s revocation closes its connection, and ends what goes on over it', async () => {
    const revoked = await createKey(home);
    const socket = open(revoked);
    await once(socket, 'open');
    socket.send(JSON.stringify(LONG));
    await until(async () => (await next(socket)).type === 'response.output_text.delta');
    const closed = once(socket, 'close');
    expect(await runCli(['keys', 'revoke', revoked.id], { SVC_HOME: home })).toMatchObject({ code: 0 });
    await closed;
    expect(await inflight()).toBe(0);
    expect(await refusal(open(revoked))).toBe(401);
  });

  test('a client that leaves ends its answer', async () => {
    const socket = open(key);
    await once(socket, 'open');
    socket.send(JSON.stringify(LONG));
    await until(async () => (await next(socket)).type === 'response.output_text.delta');
    socket.terminate();
    await until(async () => (await inflight()) === 0);
  });

  test('each message is a request: logged, and counted against the limit of its key', async () => {
    const limited = await createKey(home);
    const socket = open(limited);
    await once(socket, 'open');
    const codes = new Set<string>();
    for (let sent = 0; !codes.has('rate_limited'); sent += 1) {
      expect(sent).toBeLessThan(50);
      socket.send(JSON.stringify({ type: 'response.create', model: 'nope', input: 'Hello' }));
      const { error } = (await next(socket)) as unknown as { error: { code: string } };
      codes.add(error.code);
    }
    socket.close();
    const headers = { 'x-postern-run-token': await server.runToken() };
    const log = (await (await fetch(`${server.url}/admin/requests`, { headers })).json()) as {
      requests: { caller: string; method: string; path: string }[];
    };
    const own = log.requests.filter(({ caller }) => caller === `key ${limited.id}`);
    expect(own.filter(({ method, path }) => `${method} ${path}` === 'POST /v1/responses').length).toBeGreaterThan(30);
  });

  test.each<[string, (socket: WebSocket) => void, number]>([
    ['bytes in place of text', (socket) => socket.send(Buffer.from('{}')), 1003],
    ['a message of more than 32 MiB', (socket) => socket.send('x'.repeat(33 * 1024 * 1024)), 1009],
    [
      'more messages than may wait',
      (socket) => {
        for (let sent = 0; sent < MAX_WAITING_MESSAGES + 2; sent += 1) socket.send(JSON.stringify(LONG));
      },
      1008,
    ],
  ])('%s: the connection is closed with a code that says why', async (_, send, code) => {
    const other = await createKey(home);
    const socket = open(other);
    await once(socket, 'open');
    send(socket);
    expect((await once(socket, 'close'))[0]).toBe(code);
    await until(async () => (await inflight()) === 0);
  });

  test.each([
    ['no JSON', 'no'],
    ['another event', '{"type":"response.steer"}'],
    ['one in the background', JSON.stringify({ ...LONG, background: true })],
    ['one of many at once', JSON.stringify({ ...LONG, stream_id: 'a' })],
  ])('%s is an error, and the connection goes on', async (_, text) => {
    const other = await createKey(home);
    const socket = open(other);
    await once(socket, 'open');
    socket.send(text);
    expect(await next(socket)).toMatchObject({ type: 'error', status: 400 });
    socket.send(JSON.stringify({ type: 'response.create', model: 'foundation', input: 'Hello', generate: false }));
    expect(await next(socket)).toMatchObject({ type: 'response.created' });
    socket.close();
  });

  test('the official client gets its answers, one after the other', async () => {
    const { token } = await createKey(home);
    const socket = new ResponsesWS(new OpenAI({ baseURL: `${server.url}/v1`, apiKey: token }));
    const ask = (body: object): Promise<OpenAI.Responses.Response> =>
      new Promise((resolve, reject) => {
        socket.once('response.completed', ({ response }) => resolve(response));
        socket.once('error', reject);
        socket.send({ type: 'response.create', model: 'foundation', store: false, ...body });
      });
    const first = await ask({ input: 'My name is Alice.' });
    const second = await ask({ input: 'What is my name?', previous_response_id: first.id });
    expect(second.output).toMatchObject([{ content: [{ text: 'Your name is Alice.' }] }]);
    socket.close();
  });
});
