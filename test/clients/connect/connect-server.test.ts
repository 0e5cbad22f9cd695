/** The second laptop's server in front of a home that answers as each test says. */
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import {
  startConnectServer,
  type ConnectServer,
  type ConnectServerOptions,
} from '../../../clients/connect/connect-server.ts';
import { MAX_SEALED_BODY_BYTES } from '../../../channel/request-bounds.ts';
import { setProcessTimer } from '../../../core/timer.ts';
import { untoldPeers } from '../../../gateway/peer-process.ts';
import { PosternError } from '../../../clients/sdk/index.ts';
import { rawConnection, rawRequest } from '../../support/raw-connection.ts';
import { until } from '../../support/wait.ts';
import { ask } from './raw-request.ts';

interface SentRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  readonly signal: AbortSignal;
}
type Home = (asked: SentRequest) => Response | Promise<Response>;

const servers: ConnectServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.cut();
    await server.close();
  }
});

async function start(home: Home, more: Partial<ConnectServerOptions> = {}) {
  const asked: SentRequest[] = [];
  const outcomes: unknown[] = [];
  const server = await startConnectServer({
    port: 0,
    gatewayName: 'study',
    allowedOrigins: [],
    peers: untoldPeers,
    setTimer: setProcessTimer,
    onOutcome: (error) => outcomes.push(error),
    fetch: async (input, init) => {
      const one: SentRequest = {
        url: typeof input === 'string' ? input : '',
        method: init?.method ?? '',
        headers: Object.fromEntries(new Headers(init?.headers)),
        body: Buffer.from(await new Response(init?.body).arrayBuffer()),
        signal: init!.signal!,
      };
      asked.push(one);
      return home(one);
    },
    ...more,
  });
  servers.push(server);
  return { port: server.port, server, asked, outcomes };
}
const fine: Home = () => Response.json({ data: [] });

test('of the requests that a client pipelines one is carried home at a time, and none after its connection was cut', async () => {
  const isCut = (): boolean => asked[0]?.signal.aborted === true;
  const { port, asked } = await start((one) => (isCut() ? fine(one) : untilAborted(one.signal)));
  const client = connect(port, '127.0.0.1');
  client.write('GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(80));
  await until(() => asked.length > 0);
  client.destroy();
  await until(() => asked[0]?.signal.aborted === true);
  expect(asked).toHaveLength(1);
  const answers = await Promise.all(Array.from({ length: 60 }, () => ask(port)));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 60 }, () => 200));
});

/** A home that says nothing until its caller leaves. */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
}

describe('a request', () => {
  test('reaches home as it was sent, without what is about this connection or a key', async () => {
    const { port, asked, outcomes } = await start(() => Response.json({ ok: true }, { status: 201 }));
    const answer = await ask(port, {
      method: 'POST',
      path: '/v1/messages?beta=true&x=%2F',
      headers: {
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
        authorization: 'Bearer secret',
        'x-api-key': 'secret',
        cookie: 'a=b',
        'user-agent': 'x',
      },
      body: '{"a":"ü"}',
    });
    expect(answer).toMatchObject({ status: 201, body: '{"ok":true}' });
    expect(answer.headers['content-type']).toBe('application/json');
    expect(asked).toMatchObject([
      { url: 'http://gateway.invalid/v1/messages?beta=true&x=%2F', method: 'POST', body: Buffer.from('{"a":"ü"}') },
    ]);
    expect(asked[0]?.headers).toEqual({ 'content-type': 'application/json', 'anthropic-version': '2023-06-01' });
    expect(outcomes).toEqual([undefined]);
  });

  test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE'])('%s is carried', async (method) => {
    const { port, asked } = await start(() => new Response(method === 'HEAD' ? null : 'x', { headers: { etag: '1' } }));
    expect(await ask(port, { method })).toMatchObject({ status: 200, headers: { etag: '1' } });
    expect(asked[0]?.method).toBe(method);
  });

  test('a path that looks like another host stays a path', async () => {
    const { port, asked } = await start(fine);
    await ask(port, { path: '//evil.example/x' });
    expect(new URL(asked[0]!.url).host).toBe('gateway.invalid');
  });

  test.each([
    ['GET', 'http://evil.example/', 403],
    ['TRACE', '/v1/models', 405],
    ['PROPFIND', '/v1/models', 405],
  ])('%s %s is refused here', async (method, path, status) => {
    const { port, asked } = await start(fine);
    expect(await ask(port, { method, path })).toMatchObject({ status });
    expect(asked).toEqual([]);
  });

  test('/ says what this is, without asking home', async () => {
    const { port, asked } = await start(fine);
    expect(await ask(port, { path: '/' })).toMatchObject({ status: 200, body: expect.stringContaining('"study"') });
    expect(await ask(port, { path: '/', method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
    expect(asked).toEqual([]);
  });
});

describe('a body', () => {
  test('of the largest size is carried whole', async () => {
    const body = Buffer.alloc(MAX_SEALED_BODY_BYTES, 7);
    const { port, asked } = await start(fine);
    expect(await ask(port, { method: 'POST', body })).toMatchObject({ status: 200 });
    expect(asked[0]?.body.equals(body)).toBe(true);
  });

  test.each([
    ['declared', { 'content-length': String(MAX_SEALED_BODY_BYTES + 1) }],
    ['chunked', { 'transfer-encoding': 'chunked' }],
  ])('one byte larger, %s, is 413 and reaches nobody', async (_, headers) => {
    const { port, asked } = await start(fine);
    const answer = await ask(port, { method: 'POST', headers, body: Buffer.alloc(MAX_SEALED_BODY_BYTES + 1) });
    expect(answer).toMatchObject({ status: 413, body: expect.stringContaining('body_too_large') });
    expect(asked).toHaveLength(0);
  });

  test('answered before it is whole, it says that its connection ends', async () => {
    const { port } = await start(fine);
    const { socket, receives } = await rawConnection(port);
    const headers = { 'content-length': String(MAX_SEALED_BODY_BYTES + 1) };
    socket.write(rawRequest({ method: 'POST', path: '/v1/models', headers }));
    expect(await receives(/^HTTP\/1\.1 413 [^]*\r\n\r\n\{/)).toMatch(/\r\nconnection: close\r\n/i);
    socket.destroy();
  });
});

describe('a web page', () => {
  const page = { origin: 'https://evil.example' };
  test.each<[string, Record<string, string>, string]>([
    ['another host name', { host: 'evil.example' }, 'foreign_host'],
    ['a rebound name', { host: 'localhost.evil.example:1337' }, 'foreign_host'],
    ['a foreign origin', page, 'cross_site'],
    ['the null origin', { origin: 'null' }, 'cross_site'],
    ['another port of this machine', { origin: 'http://localhost:3000' }, 'cross_site'],
    ['Sec-Fetch-Site', { 'sec-fetch-site': 'cross-site' }, 'cross_site'],
    ['a page of the same site', { 'sec-fetch-site': 'same-site' }, 'cross_site'],
    ['X-Forwarded-For', { 'x-forwarded-for': '127.0.0.1' }, 'forbidden'],
    ['Forwarded', { forwarded: 'for=127.0.0.1' }, 'forbidden'],
    ['Via', { via: '1.1 proxy' }, 'forbidden'],
    ['a tunnel', { 'cf-connecting-ip': '1.2.3.4' }, 'forbidden'],
  ])('behind %s is refused everywhere', async (_, headers, code) => {
    const { port, asked } = await start(fine);
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', '/health'],
      ['POST', '/v1/chat/completions'],
      ['OPTIONS', '/v1/chat/completions'],
    ] as const) {
      const answer = await ask(port, { method, path, headers });
      expect(answer, `${method} ${path}`).toMatchObject({ status: 403, body: expect.stringContaining(code) });
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    }
    expect(asked).toEqual([]);
  });

  test('* lets nobody in', async () => {
    const { port } = await start(fine, { allowedOrigins: ['*'] });
    expect(await ask(port, { headers: page })).toMatchObject({ status: 403 });
  });

  test('that the owner named may call and read, failures too', async () => {
    const origin = 'https://app.example';
    const { port } = await start(() => Promise.reject(new PosternError('offline')), { allowedOrigins: [origin] });
    const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-stainless-os' };
    const asked = await ask(port, { method: 'OPTIONS', headers: { origin, ...preflight } });
    expect(asked).toMatchObject({ status: 204, headers: { 'access-control-allow-origin': origin } });
    expect(asked.headers['access-control-allow-headers']).toContain('x-stainless-os');
    const answer = await ask(port, { headers: { origin } });
    expect(answer).toMatchObject({ status: 503, headers: { 'access-control-allow-origin': origin } });
    expect(await ask(port, { headers: page })).toMatchObject({ status: 403 });
  });

  test('OPTIONS of a program names the methods and permits nothing', async () => {
    const { port } = await start(fine);
    const { status, headers } = await ask(port, { method: 'OPTIONS' });
    expect({ status, allow: headers.allow }).toEqual({ status: 204, allow: expect.stringContaining('POST') });
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  test('gets no permission that home would give', async () => {
    const { port } = await start(() => new Response('x', { headers: { 'access-control-allow-origin': '*' } }));
    expect((await ask(port)).headers['access-control-allow-origin']).toBeUndefined();
  });
});

describe('an answer', () => {
  /** A stream that gives a piece when the test says so, and tells how many were asked for. */
  function pieces() {
    const asks: (() => void)[] = [];
    let cancelled = false;
    const encoder = new TextEncoder();
    let controller: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (given) => void (controller = given),
        pull: () => new Promise<void>((resolve) => asks.push(resolve)),
        cancel: () => void (cancelled = true),
      },
      { highWaterMark: 0 },
    );
    const next = () => until(() => asks.shift());
    return {
      body,
      async give(text: string) {
        const asked = await next();
        controller.enqueue(encoder.encode(text));
        asked();
      },
      async fail(error: Error) {
        const asked = await next();
        controller.error(error);
        asked();
      },
      isCancelled: () => cancelled,
    };
  }
  const stream = { 'content-type': 'text/event-stream' };

  test('is passed on piece by piece, its status before the first', async () => {
    const source = pieces();
    const { port } = await start(() => new Response(source.body, { status: 202, headers: stream }));
    const sent = request({ port, path: '/v1/x', agent: false }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    expect(answer.statusCode).toBe(202);
    for (const text of ['data: 1\n\n', 'data: 2\n\n']) {
      await source.give(text);
      expect(String((await once(answer, 'data'))[0])).toBe(text);
    }
  });

  test('is asked for no faster than the client reads', async () => {
    let asks = 0;
    const piece = new Uint8Array(1024 * 1024);
    const body = new ReadableStream<Uint8Array>(
      { pull: (controller) => (++asks > 256 ? controller.close() : controller.enqueue(piece)) },
      { highWaterMark: 0 },
    );
    const { port } = await start(() => new Response(body));
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /v1/x HTTP/1.1\r\nhost: localhost\r\n\r\n'));
    socket.pause();
    let before = -1;
    // It stands still when neither it nor the sockets take more, far below what an unbounded source would give.
    await until(async () => {
      const same = asks > 0 && asks === before;
      before = asks;
      for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
      return same && asks === before;
    });
    expect(asks).toBeLessThan(64);
    const stood = asks;
    socket.resume();
    await until(() => asks > stood + 32);
    socket.destroy();
  });

  test('whose client leaves is ended at home', async () => {
    const source = pieces();
    const { port, asked, outcomes } = await start(() => new Response(source.body, { headers: stream }));
    const sent = request({ port, path: '/v1/x', agent: false }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    await source.give('data: 1\n\n');
    await once(answer, 'data');
    sent.destroy();
    await until(() => asked[0]?.signal.aborted);
    expect(outcomes).toEqual([]);
  });

  test('that has not begun is ended too when its client leaves', async () => {
    const { port, asked } = await start(
      ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    );
    const sent = request({ port, path: '/v1/x', agent: false }).end();
    sent.on('error', () => undefined);
    await until(() => asked.length === 1);
    sent.destroy();
    await until(() => asked[0]?.signal.aborted);
  });

  const { message } = new PosternError('revoked');
  const ndjson = { 'content-type': 'application/x-ndjson' };
  test.each([
    ['/v1/x', stream, 'data: 1\n\n', `data: {"error":{"message":"${message}","type":"authentication_error",`],
    ['/v1/x', stream, 'data: 1', `\n\ndata: {"error":{"message":"${message}",`],
    [
      '/v1/messages',
      stream,
      'data: 1\n\n',
      'event: error\ndata: {"type":"error","error":{"type":"authentication_error",',
    ],
    ['/api/chat', ndjson, '{}\n', `{"error":"${message}"}\n`],
    ['/v1/x', { 'content-type': 'application/json' }, '{', ''],
  ])(
    'that breaks off at home (%s, %j) is no whole answer here, and a stream says why',
    async (path, headers, ...is) => {
      const [first, then] = is;
      const source = pieces();
      const { port, outcomes } = await start(() => new Response(source.body, { headers }));
      const sent = request({ port, path, agent: false }).end();
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      let heard = '';
      answer.on('data', (chunk: Buffer) => (heard += chunk.toString()));
      await source.give(first);
      await until(() => heard === first);
      const broken = once(answer, 'error');
      await source.fail(new PosternError('revoked'));
      expect(await broken).toMatchObject([{ code: 'ECONNRESET' }]);
      expect(heard.slice(first.length).startsWith(then)).toBe(true);
      if (then === '') expect(heard).toBe(first);
      await until(() => outcomes.length === 1);
    },
  );

  test('that is under way is finished when the server ends, and nothing new is taken', async () => {
    const source = pieces();
    const { port, server } = await start(() => new Response(source.body));
    const idle = connect(port, '127.0.0.1');
    await once(idle, 'connect');
    const sent = request({ port, path: '/v1/x' }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    let isClosed = false;
    const closed = server.close().then(() => (isClosed = true));
    await once(idle.resume(), 'close');
    await expect(ask(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(isClosed).toBe(false);
    await source.give('last');
    expect(String((await once(answer, 'data'))[0])).toBe('last');
    sent.destroy();
    await closed;
  });
});

describe('a failure', () => {
  test.each([
    ['offline', 503, undefined],
    ['busy', 503, undefined],
    ['revoked', 401, undefined],
    ['refused', 401, undefined],
    ['wrong_gateway', 502, 'false'],
    ['restarted', 502, 'false'],
    ['answer_lost', 502, 'false'],
  ] as const)('%s is %i in each style, and says whether to repeat', async (code, status, shouldRetry) => {
    const error = new PosternError(code);
    const { port, outcomes } = await start(() => Promise.reject(error));
    const { message } = error;
    const at = async (path: string) => {
      const answer = await ask(port, { method: 'POST', path });
      expect(answer).toMatchObject({ status, headers: { 'content-type': 'application/json; charset=utf-8' } });
      expect(answer.headers['x-should-retry']).toBe(shouldRetry);
      return JSON.parse(answer.body) as unknown;
    };
    expect(await at('/v1/chat/completions')).toEqual({
      error: { message, type: expect.any(String), param: null, code },
    });
    expect(await at('/v1/messages?beta=true')).toEqual({ type: 'error', error: { type: expect.any(String), message } });
    expect(await at('/api/chat')).toEqual({ error: message });
    expect(await at('/api/nowhere')).toEqual({ error: message });
    expect(outcomes).toEqual([error, error, error, error]);
  });

  test('is told in Anthropic’s style where only a header says that its client speaks that', async () => {
    const { port } = await start(() => Promise.reject(new PosternError('offline')));
    const { body } = await ask(port, { path: '/v1/models', headers: { 'anthropic-version': '2023-06-01' } });
    expect(JSON.parse(body)).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } });
  });

  test('that nobody foresaw says nothing of what was asked', async () => {
    const { port, outcomes } = await start(() => Promise.reject(new TypeError('the prompt was SECRET')));
    const answer = await ask(port);
    expect(answer).toMatchObject({ status: 500 });
    expect(answer.body).not.toContain('SECRET');
    expect(outcomes).toHaveLength(1);
  });

  test('that home tells of passes through', async () => {
    const { port, outcomes } = await start(() =>
      Response.json({ error: 'x' }, { status: 429, headers: { 'retry-after': '5' } }),
    );
    expect(await ask(port)).toMatchObject({ status: 429, body: '{"error":"x"}', headers: { 'retry-after': '5' } });
    expect(outcomes).toEqual([undefined]);
  });

  test('of too many requests at once is a 503, and passes', async () => {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const { port, asked } = await start(() => released.then(() => new Response('x')));
    const running = Array.from({ length: 64 }, () => ask(port));
    await until(() => asked.length === 64);
    expect(await ask(port)).toMatchObject({ status: 503, body: expect.stringContaining('overloaded') });
    release();
    await Promise.all(running);
    expect(await ask(port)).toMatchObject({ status: 200 });
  });
});

describe('the sockets', () => {
  test('both loopback addresses answer, on one port', async () => {
    const { port } = await start(fine);
    expect(await ask(port, { host: '::1' })).toMatchObject({ status: 200 });
  });

  test('a port that is taken on either is an error', async () => {
    const { port } = await start(fine);
    await expect(start(fine, { port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});
