/** Requests that HTTP allows and hardly any client sends: other targets, methods and framings than the usual ones. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rawConnection, rawRequest } from '../support/raw-connection.ts';
import { readLog } from '../support/request-log.ts';
import { startServer, type TestServer } from '../support/server.ts';

const MIB = 1024 * 1024;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.stop());

interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** What comes back on one connection until it is closed. */
async function answersTo(bytes: string): Promise<readonly RawAnswer[]> {
  const connection = await rawConnection(server.port);
  connection.socket.write(bytes, 'latin1');
  const text = await connection.all();
  return text
    .split(/(?=HTTP\/1\.1 \d{3} )/)
    .filter((answer) => answer !== '')
    .map((answer) => {
      const [head = '', body = ''] = answer.split('\r\n\r\n', 2);
      return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body };
    });
}

const CLOSE = { connection: 'close' };
const request = (method: string, path: string) => rawRequest({ method, path, headers: CLOSE });
const last = rawRequest({ path: '/', headers: CLOSE });

test('a request to go on in another protocol is the last one of its connection, and hides no other behind it', async () => {
  const upgrade = { connection: 'Upgrade', upgrade: 'websocket' };
  const [hidden, ...rest] = [rawRequest({ path: '/nowhere' }), rawRequest({ path: '/health', headers: CLOSE })];
  const both = rawRequest({ path: '/health', headers: upgrade }) + hidden + rest.join('');
  const answers = await answersTo(both);
  expect(answers.map(({ status }) => status)).toEqual([200]);
  expect(answers[0]?.head).toContain('connection: close');
});

describe('methods', () => {
  test.each([
    ['HEAD', '/v1/chat/completions', 'POST, OPTIONS'],
    ['PROPFIND', '/v1/models', 'GET, HEAD, OPTIONS'],
    ['TRACE', '/admin/keys', 'GET, POST, DELETE, HEAD, OPTIONS'],
    ['M-SEARCH', '/', 'GET, HEAD, OPTIONS'],
  ])('%s %s is a 405 with Allow: %s', async (method, path, allow) => {
    const [answer, ...more] = await answersTo(request(method, path));
    expect([answer?.status, /\r\nallow: (.*)\r\n/.exec(answer?.head ?? '')?.[1], more]).toEqual([
      405,
      allow.toLowerCase(),
      [],
    ]);
    expect(answer?.body === '').toBe(method === 'HEAD');
  });

  test.each(['PROPFIND', 'TRACE', 'HEAD'])('%s at an address that is none is a 404', async (method) => {
    expect((await answersTo(request(method, '/nowhere')))[0]?.status).toBe(404);
  });

  test('HEAD answers as GET would, without the body', async () => {
    const [head] = await answersTo(request('HEAD', '/openapi.json'));
    const [get] = await answersTo(request('GET', '/openapi.json'));
    expect([head?.status, head?.body]).toEqual([200, '']);
    expect(head?.head).toContain(`\r\ncontent-length: ${Buffer.byteLength(get?.body ?? '', 'latin1')}\r\n`);
  });

  // Node's parser ends with these, so that nothing after them is read.
  test.each([
    ['CONNECT', 'CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\n'],
    ['a method that nobody knows', 'FROBNICATE /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  ])('%s is a 501 in words, and the connection ends', async (_, bytes) => {
    const [answer, ...more] = await answersTo(bytes);
    expect([answer?.status, more]).toEqual([501, []]);
    expect(answer?.head).toContain('\r\nconnection: close');
    expect(JSON.parse(answer?.body ?? '')).toMatchObject({ error: { code: 'not_implemented' } });
  });

  test('CONNECT behind a request waits for its answer', async () => {
    const statuses = (await answersTo(`${rawRequest({ path: '/' })}CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n`)).map(
      ({ status }) => status,
    );
    expect(statuses).toEqual([200, 501]);
  });
});

describe('an address with scheme and host (RFC 9112, 3.2.2)', () => {
  const absolute = (target: string, host = 'localhost') =>
    `GET ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`;

  test('is served as its path, and logged so', async () => {
    for (const authority of [`127.0.0.1:${server.port}`, 'LOCALHOST', '[::1]:1']) {
      const [answer] = await answersTo(absolute(`http://${authority}/v1/models?a=b`));
      expect([authority, answer?.status]).toEqual([authority, 200]);
    }
    expect((await answersTo(absolute('HTTP://localhost')))[0]?.body).toContain('Postern is running');
    expect((await answersTo(absolute('http://localhost?a=b')))[0]?.status).toBe(200);
    expect((await readLog(server, 'search=/v1/models')).requests[0]).toMatchObject({
      path: '/v1/models',
      route: '/models',
    });
  });

  test.each([
    ['https://localhost/health', 421],
    ['ws://localhost/health', 421],
    ['http://me:hush@localhost/health', 421],
    ['http://evil.example/health', 403],
  ])('%s is refused with %i', async (target, status) => {
    expect((await answersTo(absolute(target)))[0]?.status).toBe(status);
  });
});

describe('transfer codings', () => {
  test.each(['gzip, chunked', 'x-unheard-of, chunked'])('%s is a 501 that says so', async (coding) => {
    const body = '2\r\n{}\r\n0\r\n\r\n';
    const headers = { ...CLOSE, 'transfer-encoding': coding };
    const [answer] = await answersTo(rawRequest({ method: 'POST', path: '/v1/chat/completions', headers }) + body);
    expect(answer?.status).toBe(501);
    expect(JSON.parse(answer?.body ?? '')).toMatchObject({ error: { message: expect.stringContaining('chunked') } });
  });

  test('chunked may be written in any case', async () => {
    const headers = { ...CLOSE, 'transfer-encoding': 'Chunked' };
    const [answer] = await answersTo(
      `${rawRequest({ method: 'POST', path: '/v1/chat/completions', headers })}2\r\n{}\r\n0\r\n\r\n`,
    );
    expect(JSON.parse(answer?.body ?? '')).toMatchObject({ error: { param: 'model' } });
  });
});

describe('an answer that comes before its request is whole', () => {
  const tooLong = (headers: Readonly<Record<string, string>>) =>
    rawRequest({ method: 'POST', path: '/v1/chat/completions', headers });

  test.each([
    ['announced', tooLong({ 'content-length': String(40 * MIB) }), ' '.repeat(40 * MIB)],
    [
      'in chunks',
      tooLong({ 'transfer-encoding': 'chunked' }),
      `${(40 * MIB).toString(16)}\r\n${' '.repeat(40 * MIB)}\r\n0\r\n\r\n`,
    ],
  ])('says that its connection ends, and nothing that comes after it is begun: %s', async (_, head, body) => {
    const connection = await rawConnection(server.port);
    connection.socket.write(head + body.slice(0, 33 * MIB), 'latin1');
    expect(await connection.receives(/^HTTP\/1\.1 413 [^]*\r\n\r\n\{/)).toMatch(/\r\nconnection: close\r\n/i);
    connection.socket.write(body.slice(33 * MIB) + last, 'latin1');
    expect((await connection.all()).match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 413']);
  });
});
