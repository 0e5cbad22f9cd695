/** What is no HTTP, too much of it or too slow: answered by us, and never so that a page could embed the answer. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerMalformed } from '../../gateway/malformed-request.ts';
import { startRelay, type Relay } from '../../relay/relay-server.ts';
import { askForInvite } from '../support/invites.ts';
import { rawConnection, rawRequest } from '../support/raw-connection.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';

const head = 'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n';
const MALFORMED: readonly (readonly [string, number, string])[] = [
  ['what is no HTTP', 400, 'NONSENSE\r\n\r\n'],
  ['another protocol', 400, '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['the beginning of HTTP/2', 400, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a header without a colon', 400, 'GET / HTTP/1.1\r\nhost localhost\r\n\r\n'],
  ['two lengths', 400, `${head}content-length: 1\r\ncontent-length: 2\r\n\r\n{}`],
  ['a length and chunks', 400, `${head}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}`],
  ['headers of 64 KiB', 431, `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'x'.repeat(65_536)}\r\n\r\n`],
];
const OF_THE_SERVICE: typeof MALFORMED = [
  ...MALFORMED,
  ['no Host', 400, 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n'],
  ['chunks that are none', 400, `${head}transfer-encoding: chunked\r\n\r\nxyz\r\n`],
  ['a method that nobody knows', 501, 'FROBNICATE / HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  ['CONNECT', 501, 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n'],
  ['the address of another service', 421, 'GET ftp://localhost/ HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  ['a chunk with endless extensions', 413, `${head}transfer-encoding: chunked\r\n\r\n1;${'x'.repeat(65_536)}\r\n`],
];

interface Answer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

function parse(text: string): Answer {
  const [top = '', body = ''] = text.split('\r\n\r\n', 2);
  const [statusLine = '', ...lines] = top.split('\r\n');
  const headers = lines.map((line) => [line.split(':', 1)[0]!.toLowerCase(), line.replace(/^[^:]*: /, '')] as const);
  return { status: Number(statusLine.split(' ')[1]), headers: new Map(headers), body };
}

async function answerTo(port: number, bytes: string): Promise<Answer> {
  const connection = await rawConnection(port);
  connection.socket.write(bytes, 'latin1');
  return parse(await connection.all());
}

function expectOurs({ status, headers, body }: Answer, expected: number): void {
  expect([status, Object.fromEntries(headers)]).toEqual([
    expected,
    expect.objectContaining({
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      'content-type': expect.stringMatching(/^application\/json/),
      'content-length': String(Buffer.byteLength(body)),
      connection: 'close',
    }),
  ]);
}

/** By these a client, or whoever helps it, names the request. */
function expectIds({ headers }: Answer): string | undefined {
  expect(headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/);
  expect(headers.get('request-id')).toBe(headers.get('x-request-id'));
  expect(Date.parse(headers.get('date') ?? '')).not.toBeNaN();
  return headers.get('x-request-id');
}

const SHAPE = { error: { message: expect.any(String), type: 'invalid_request_error', code: expect.any(String) } };

describe('What is no HTTP is sent to the service', () => {
  let home: string;
  let server: TestServer;
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'postern-malformed-'));
    server = await startServer({ home });
  });
  afterAll(async () => {
    await server?.stop();
    await rm(home, { recursive: true, force: true });
  });

  test.each(OF_THE_SERVICE)('%s is answered with %i in the shape of every other error', async (_, status, bytes) => {
    const answer = await answerTo(server.port, bytes);
    expectOurs(answer, status);
    expectIds(answer);
    expect(JSON.parse(answer.body)).toMatchObject(SHAPE);
  });

  test('no two of these answers have one id', async () => {
    const ids = await Promise.all(MALFORMED.map(async ([, , bytes]) => expectIds(await answerTo(server.port, bytes))));
    expect(new Set(ids).size).toBe(MALFORMED.length);
  });

  test('“postern connect” answers the same', async () => {
    const laptopHome = await mkdtemp(join(tmpdir(), 'postern-laptop-'));
    await runCli(['pair', '-'], { SVC_HOME: laptopHome }, await askForInvite(server));
    const laptop = await startServer({ home: laptopHome, program: [cliPath, 'connect'] });
    try {
      for (const [, status, bytes] of OF_THE_SERVICE) {
        const answer = await answerTo(laptop.port, bytes);
        expectOurs(answer, status);
        expect(JSON.parse(answer.body)).toMatchObject(SHAPE);
      }
    } finally {
      await laptop.stop();
      await rm(laptopHome, { recursive: true, force: true });
    }
  });

  test('behind a request it waits for that request’s answer, and nothing after it is done', async () => {
    const chat = { model: 'foundation', max_tokens: 4, messages: [{ role: 'user', content: 'Hello' }] };
    const good = rawRequest({ path: '/v1/chat/completions', body: chat });
    for (const bad of ['NONSENSE\r\n\r\n', 'GET / HTTP/1.1\r\n\r\n']) {
      const connection = await rawConnection(server.port);
      connection.socket.write(good + bad + rawRequest({ path: '/' }));
      expect((await connection.all()).match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
    }
  });

  test('an expectation that nobody knows is no reason to refuse a request', async () => {
    const headers = { expect: 'miracles', connection: 'close' };
    expect(await answerTo(server.port, rawRequest({ path: '/', headers }))).toMatchObject({ status: 200 });
  });

  test('a request that takes too long to come is answered so, too', () => {
    const answer = parse(answerMalformed(Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })));
    expectOurs(answer, 408);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'request_timeout' } });
  });
});

describe('What is no HTTP is sent to a relay', () => {
  let relay: Relay;
  beforeAll(async () => {
    relay = await startRelay({ host: '127.0.0.1', port: 0, metrics: { host: '127.0.0.1', port: 0 } });
  });
  afterAll(() => relay.close());

  const upgrade =
    'GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: ';
  test.each([
    ...MALFORMED,
    ['a WebSocket without our protocol', 400, `${upgrade}13\r\nsec-websocket-key: ${btoa('x'.repeat(16))}\r\n\r\n`],
    ['a WebSocket without a key', 400, `${upgrade}13\r\nsec-websocket-protocol: svc-relay.v1\r\n\r\n`],
    ['headers that never end', 408, 'GET / HTTP/1.1\r\nhost: localhost\r\n'],
  ] as typeof MALFORMED)('%s is answered with %i, in words', async (_, status, bytes) => {
    const answer = await answerTo(relay.port, bytes);
    expectOurs(answer, status);
    expect(JSON.parse(answer.body)).toEqual({ error: expect.any(String) });
  });

  test.each(MALFORMED)('%s is answered so where its metrics are, too', async (_, status, bytes) => {
    expectOurs(await answerTo(relay.metricsPort!, bytes), status);
  });
});
