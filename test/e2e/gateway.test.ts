/** The gateway from outside: caps, callers, pages, aliases, methods, content types. */
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { routes } from '../../gateway/routes.ts';
import { dialectOf } from '../../gateway/wire/dialects.ts';
import { RUN_TOKEN_HEADER } from '../../gateway/run-token.ts';
import { startServer, type TestServer } from '../support/server.ts';

const MIB = 1024 * 1024;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly json: { error?: { type: string; code: string; message: string }; [name: string]: unknown };
}

interface Call extends RequestOptions {
  readonly body?: string | Buffer;
  /** Sends the body in pieces of this size, without declaring its length. */
  readonly chunkBytes?: number;
}

/** A bare HTTP request: unlike fetch it sends any header, and it shows what comes back while it still sends. */
function call(path: string, { body, chunkBytes, ...options }: Call = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port: server.port, path, agent: false, ...options },
      (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('end', () => {
          const text = Buffer.concat(pieces).toString();
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: text,
            json: text.startsWith('{') ? JSON.parse(text) : {},
          });
        });
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    if (chunkBytes === undefined) return void request.end(body);
    const all = Buffer.from(body ?? '');
    for (let at = 0; at < all.length; at += chunkBytes) request.write(all.subarray(at, at + chunkBytes));
    request.end();
  });
}

const post = (path: string, body: unknown, options: Call = {}) =>
  call(path, {
    method: 'POST',
    body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    ...options,
  });

const hello = { model: 'foundation', messages: [{ role: 'user', content: 'Hello' }] };

describe('body caps', () => {
  const big = Buffer.alloc(33 * MIB, 0x20);

  test.each([
    ['declared', {}],
    ['chunked', { chunkBytes: MIB }],
  ])('33 MiB, %s: 413 in the style of the route, and the connection survives to say so', async (_name, options) => {
    const answer = await post('/v1/chat/completions', big, options);
    expect(answer.status).toBe(413);
    expect(answer.json.error).toMatchObject({
      type: 'invalid_request_error',
      message: expect.stringContaining('32 MiB'),
    });
  });

  test('a client that goes on sending after its 413 is heard out, not reset', async () => {
    const chunk = Buffer.concat([Buffer.from(`${MIB.toString(16)}\r\n`), Buffer.alloc(MIB), Buffer.from('\r\n')]);
    const socket = connect({ host: '127.0.0.1', port: server.port, allowHalfOpen: true });
    const ended = once(socket, 'end');
    const answer = once(socket, 'data');
    socket.write('POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n');
    socket.write('transfer-encoding: chunked\r\n\r\n');
    for (let sent = 0; sent < 33; sent += 1) socket.write(chunk);
    expect(String(await answer)).toMatch(/^HTTP\/1.1 413 .*body_too_large/s);
    for (let sent = 0; sent < 8; sent += 1) {
      await new Promise<void>((resolve, reject) => {
        socket.write(chunk, (error) => (error ? reject(error) : resolve()));
      });
    }
    socket.write('0\r\n\r\n');
    await ended;
    socket.end();
  });

  test('a declared length alone is enough: not a byte of the body is waited for', async () => {
    const answer = await new Promise<number>((resolve, reject) => {
      const request = httpRequest(
        {
          host: '127.0.0.1',
          port: server.port,
          path: '/v1/chat/completions',
          method: 'POST',
          headers: { 'content-length': 33 * MIB },
        },
        (response) => {
          resolve(response.statusCode ?? 0);
          request.destroy();
        },
      );
      request.on('error', reject);
      request.flushHeaders();
    });
    expect(answer).toBe(413);
  });

  test('32 MiB exactly is read', async () => {
    const padded = JSON.stringify(hello).padEnd(32 * MIB, ' ');
    expect((await post('/v1/chat/completions', padded)).status).toBe(200);
  });

  test('the cap comes before the caller: an anonymous remote caller gets 413 for a long body, else 401', async () => {
    const headers = { 'x-forwarded-for': '203.0.113.7' };
    expect((await post('/v1/chat/completions', big, { headers, chunkBytes: MIB })).status).toBe(413);
    expect((await post('/v1/chat/completions', big, { headers })).status).toBe(413);
    expect((await post('/v1/chat/completions', hello, { headers })).status).toBe(401);
  });

  test.each([
    ['/pair', 64 * 1024],
    ['/pair-invite', 64 * 1024],
    ['/secure/session', 8 * 1024],
    ['/admin/config/plan', 512 * 1024],
  ])('%s takes %i bytes and not one more', async (path, cap) => {
    const headers = { 'content-type': 'application/json' };
    // Read, and found to be nothing; or not there yet.
    expect([400, 501]).toContain((await post(path, Buffer.alloc(cap), { headers })).status);
    expect((await post(path, Buffer.alloc(cap + 1), { headers })).status).toBe(413);
    expect((await post(path, Buffer.alloc(cap + 1), { headers, chunkBytes: 1000 })).status).toBe(413);
  });
});

describe('the route table', () => {
  const planned = routes.filter((route) => route.handle === undefined);

  test('a route without a handler answers 501 here, and what policy says to a stranger', async () => {
    for (const route of planned) {
      const path = route.path.replace(':id', 'default');
      const options = { method: route.method, headers: { 'content-type': 'application/json' } };
      const [local, remote] = [
        await call(path, options),
        await call(path, { ...options, headers: { ...options.headers, via: '1.1 proxy' } }),
      ];
      // Ollama's errors have no code.
      const code = dialectOf({ url: path, headers: {} }).name === 'ollama' ? undefined : 'not_implemented';
      expect([path, local.status, local.json.error?.code]).toEqual([path, 501, code]);
      const isOpen = route.access === 'public' || route.access === 'channel';
      const expected = isOpen ? 501 : route.access === 'admin' ? 403 : 401;
      expect([path, remote.status]).toEqual([path, expected]);
      if (expected === 401) expect(remote.headers['www-authenticate']).toBe('Bearer');
    }
  });

  test.each(['/v1/chat/completions', '/api/chat/completions', '/v1/api/chat/completions', '/chat/completions'])(
    '%s is one handler',
    async (path) => {
      expect((await post(path, hello)).status).toBe(200);
    },
  );

  test.each([
    '/anthropic/v1/messages',
    '/v1/v1/models',
    '/v2/models',
    '/v1models',
    '/apichat',
    '/%2e%2e/admin/status',
    '/admin/../health/x',
  ])('%s is nothing', async (path) => {
    expect((await call(path)).status).toBe(404);
  });

  test('an alias gives no way round policy', async () => {
    for (const path of [
      '/v1/admin/status',
      '/api/admin/status',
      '/v1/api/admin/status',
      '/admin/status?x=1',
      '/%61dmin/status',
    ]) {
      expect((await call(path, { headers: { via: '1.1 proxy' } })).status).toBe(403);
      expect((await call(path)).status).toBe(200);
    }
  });

  test('another method is 405 and names those there are; HEAD answers where GET does', async () => {
    const answer = await call('/v1/models', { method: 'DELETE' });
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toBe('GET, HEAD, OPTIONS');
    const head = await call('/', { method: 'HEAD' });
    expect([head.status, head.body]).toEqual([200, '']);
  });

  test("malformed addresses and methods are the client's fault", async () => {
    expect((await call('/v1/models/%zz')).status).toBe(400);
    expect((await call(`/v1/models/${'x'.repeat(5000)}`)).status).toBeLessThan(500);
    expect((await call('//evil.example/x')).status).toBe(404);
  });
});

describe('strangers and pages on loopback', () => {
  const guarded = ['/agents', '/mcp/tools', '/admin/status'];

  test.each(['evil.example', 'localhost.evil.example:1337', 'evil.example:1337'])(
    'Host %s is refused everywhere',
    async (host) => {
      for (const path of ['/', '/health', '/v1/models', ...guarded]) {
        const answer = await call(path, { headers: { host } });
        expect([path, answer.status, answer.json.error?.code]).toEqual([path, 403, 'foreign_host']);
      }
      expect((await post('/v1/chat/completions', hello, { headers: { host } })).status).toBe(403);
    },
  );

  test.each([
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://localhost:3000' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])('a page with %j gets nothing from agents, tools and admin, and no CORS leave to read', async (headers) => {
    for (const path of guarded) {
      const answer = await call(path, { headers });
      expect([path, answer.status]).toEqual([path, 403]);
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    }
    const token = await server.runToken();
    expect((await call('/admin/status', { headers: { ...headers, [RUN_TOKEN_HEADER]: token } })).status).toBe(403);
    expect((await call('/health', { headers })).json).toEqual({ status: 'healthy', timestamp: expect.any(String) });
  });

  test.each([
    'forwarded',
    'x-forwarded-for',
    'x-forwarded-proto',
    'x-real-ip',
    'via',
    'cf-connecting-ip',
    'tailscale-user-login',
  ])('%s makes a caller a stranger', async (header) => {
    const headers = { [header]: 'for=127.0.0.1' };
    expect((await call('/v1/models', { headers })).status).toBe(401);
    expect((await call('/agents', { headers })).status).toBe(401);
    expect((await call('/admin/status', { headers })).status).toBe(403);
    expect((await call('/health', { headers })).json).toEqual({ status: 'healthy', timestamp: expect.any(String) });
  });

  test('our own page needs the token of this run for admin', async () => {
    const origin = `http://127.0.0.1:${server.port}`;
    expect((await call('/admin/status', { headers: { origin } })).status).toBe(403);
    expect((await call('/admin/status', { headers: { origin, [RUN_TOKEN_HEADER]: 'wrong' } })).status).toBe(403);
    const headers = { origin, [RUN_TOKEN_HEADER]: await server.runToken() };
    expect((await call('/admin/status', { headers })).status).toBe(200);
  });

  test('admin and agents take JSON that says so; inference takes it under any name', async () => {
    const body = '{"prompt":"x"}';
    for (const path of ['/admin/config/plan', '/agents/default/dispatch', '/mcp/call', '/memory/ingest']) {
      expect((await post(path, body, { headers: { 'content-type': 'text/plain' } })).status).toBe(415);
      expect((await post(path, body)).status).toBe(415);
      expect((await post(path, body, { headers: { 'content-type': 'application/json; charset=utf-8' } })).status).toBe(
        501,
      );
    }
    for (const contentType of ['text/plain', 'application/x-www-form-urlencoded', 'application/json', 'nonsense']) {
      expect((await post('/v1/chat/completions', hello, { headers: { 'content-type': contentType } })).status).toBe(
        200,
      );
    }
    expect((await post('/v1/chat/completions', hello)).status).toBe(200);
  });
});

describe('CORS', () => {
  const preflight = (path: string, headers: Record<string, string>) =>
    call(path, {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example', 'access-control-request-method': 'POST', ...headers },
    });

  test('inference is open to any page, with the headers that browser SDKs send', async () => {
    const asked = 'authorization,content-type,x-stainless-lang,x-stainless-retry-count,anthropic-version,x-api-key';
    const answer = await preflight('/v1/chat/completions', { 'access-control-request-headers': asked });
    expect(answer.status).toBe(204);
    expect(answer.headers['access-control-allow-origin']).toBe('*');
    expect(answer.headers['access-control-allow-methods']).toBe('GET, POST, OPTIONS');
    const allowed = String(answer.headers['access-control-allow-headers']).toLowerCase();
    for (const header of asked.split(',')) expect(allowed).toContain(header);
    const real = await post('/v1/chat/completions', hello, { headers: { origin: 'https://app.example' } });
    expect([real.status, real.headers['access-control-allow-origin']]).toEqual([200, '*']);
  });

  test('agents, tools and admin are not', async () => {
    for (const path of ['/mcp/call', '/agents/x/run', '/admin/shutdown']) {
      const answer = await preflight(path, {});
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    }
  });

  test('header names are echoed only when they are header names', async () => {
    const answer = await preflight('/v1/chat/completions', { 'access-control-request-headers': 'x-ok, "bad\\header' });
    expect(answer.headers['access-control-allow-headers']).toBe('Content-Type, Authorization');
  });
});

test('anonymous remote callers are limited, callers on this machine are not', async () => {
  const limited = await startServer();
  try {
    const statuses = async (headers: Record<string, string>) => {
      const answers = await Promise.all(
        Array.from({ length: 70 }, () => call('/health', { port: limited.port, headers })),
      );
      return new Set(answers.map((answer) => answer.status));
    };
    expect(await statuses({})).toEqual(new Set([200]));
    expect(await statuses({ via: '1.1 proxy' })).toEqual(new Set([200, 429]));
  } finally {
    await limited.stop();
  }
});

test('what a request asks for in vain is named to its client each time, and once in the log', async () => {
  const body = { model: 'foundation', input: 'Hello', tools: [{ type: 'web_search' }] };
  for (const path of ['/v1/responses', '/responses']) {
    const answer = await post(path, body);
    expect([answer.status, answer.headers['x-postern-ignored']]).toEqual([200, 'tools.web_search']);
  }
  expect(server.log().match(/tools\.web_search/g)).toHaveLength(1);
});

test('a session and an agent may be named; on this endpoint they only attribute', async () => {
  const headers = { 'x-service-agent-id': '6f1c0f5e-6a53-4c7c-9d3c-0a1b2c3d4e5f' };
  const answer = await post('/v1/chat/completions', { ...hello, session_id: 'morning' }, { headers });
  expect(answer.status).toBe(200);
});

test('/health on this machine is complete', async () => {
  expect((await call('/health')).json).toMatchObject({
    status: 'healthy',
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    loaded: expect.any(Array),
    current_model: expect.any(String),
    inflight: {},
    resident_models: expect.any(Array),
    memory_enabled: false,
    memory_database_open: false,
    chat_active: false,
    http_inflight: 1,
    http_inference_limit: 64,
    open_file_descriptors: expect.any(Number),
    open_connections: expect.any(Number),
    distillation: { queued: 0, active: 0 },
    batch_diagnostics: null,
  });
});
