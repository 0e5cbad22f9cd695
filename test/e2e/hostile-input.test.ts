/** Thousands of bad requests of every kind, on many connections at once; then the server answers as if nothing was. */
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runs, seed } from '../support/sampling.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const PARALLEL = 32;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.stop());

const paths = [
  '/v1/chat/completions',
  '/v1/models',
  '/health',
  '/agents/x/run',
  '/pair',
  '/secure/call',
  '/admin/config/plan',
  '/nope',
  '/v1/models/%zz',
];
const goodBody = JSON.stringify({ model: 'nope', messages: [{ role: 'user', content: 'Hello' }] });

/** Bodies that are almost right, nested without end, not UTF-8, or anything at all. */
const body = fc.oneof(
  fc
    .tuple(fc.nat(goodBody.length), fc.string({ unit: 'binary', maxLength: 3 }))
    .map(([at, junk]) => Buffer.from(goodBody.slice(0, at) + junk + goodBody.slice(at + 1))),
  fc.integer({ min: 1, max: 20_000 }).map((depth) => Buffer.from('['.repeat(depth))),
  fc.integer({ min: 101, max: 20_000 }).map((depth) => Buffer.from(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value))),
  fc
    .constantFrom(
      'NaN',
      '{"model":NaN}',
      '{"temperature":1e999,"model":"m","messages":[{"role":"user","content":"x"}]}',
      '{"__proto__":{"x":1}}',
    )
    .map((text) => Buffer.from(text)),
);

interface HttpCase {
  readonly kind: 'http';
  readonly method: string;
  readonly path: string;
  readonly body: Buffer;
  readonly contentType: string;
}
interface RawCase {
  readonly kind: 'raw';
  readonly bytes: Buffer;
}

const httpCase: fc.Arbitrary<HttpCase> = fc.record({
  kind: fc.constant('http' as const),
  method: fc.constantFrom('POST', 'POST', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'),
  path: fc.constantFrom(...paths),
  body,
  contentType: fc.constantFrom(
    'application/json',
    'text/plain',
    'multipart/form-data',
    'multipart/form-data; boundary=',
    'application/json; charset=utf-16',
    'x',
  ),
});

/** What is no HTTP, or only nearly. */
const rawCase: fc.Arbitrary<RawCase> = fc
  .oneof(
    fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    fc
      .constantFrom(
        'GET / HTTP/1.1\r\n\r\n',
        'GET / HTTP/9.9\r\nhost: localhost\r\n\r\n',
        'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n',
        'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello',
        'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
        'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n',
        'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"model"',
        `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`,
        `GET / HTTP/1.1\r\nhost: localhost\r\n${'x: y\r\n'.repeat(3000)}\r\n`,
        'GET / HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n',
        'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      )
      .map((text) => Buffer.from(text)),
  )
  .map((bytes) => ({ kind: 'raw' as const, bytes }));

/** @returns the status; every answer must be an error in words, and none our fault */
async function send(one: HttpCase | RawCase): Promise<number> {
  if (one.kind === 'raw') return sendRaw(one.bytes);
  const response = await fetch(`${server.url}${one.path}`, {
    method: one.method,
    headers: { 'content-type': one.contentType },
    body: one.body,
  });
  const answer = Buffer.from(await response.arrayBuffer());
  // The sealed channel's own routes answer with a hint, in four bytes.
  if (response.headers.get('content-type') === 'application/octet-stream') {
    expect([...answer.subarray(0, 3), answer.length]).toEqual([1, 0x7f, 0, 4]);
  } else if (response.status !== 204) {
    expect(JSON.parse(answer.toString())).toMatchObject({
      error: { message: expect.any(String), type: expect.any(String) },
    });
  }
  return response.status;
}

function sendRaw(bytes: Buffer): Promise<number> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(server.port, '127.0.0.1', () => socket.end(bytes));
    socket.on('data', (data) => (answer += data.toString('latin1')));
    socket.on('error', () => resolve(0));
    socket.on('close', () => resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)));
  });
}

test('ten thousand bad requests: each is answered with a clear error, and then the server serves', async () => {
  const cases = fc.sample(fc.oneof({ arbitrary: httpCase, weight: 9 }, { arbitrary: rawCase, weight: 1 }), {
    numRuns: runs(10_000).numRuns,
    seed,
  });
  const statuses = new Map<number, number>();
  const queue = cases.values();
  const work = async (): Promise<void> => {
    for (const one of queue) {
      const status = await send(one);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));

  // 0: cut off, as what is no HTTP deserves. 200: "GET /" was well formed after all. 501: not there yet, said in words.
  // 429: a source that sends so much nonsense to the sealed channel is not looked at any more.
  const expected = new Set([0, 200, 204, 400, 404, 405, 413, 414, 415, 429, 431, 501, 505]);
  expect([...statuses.keys()].filter((status) => !expected.has(status))).toEqual([]);
  expect(statuses.get(400)).toBeGreaterThan(cases.length / 10);

  const chat = { model: 'foundation', messages: [{ role: 'user', content: 'What is the capital of France?' }] };
  const answer = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(chat) });
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'The capital of France is Paris.' } }] });
  const health = async () => (await (await fetch(`${server.url}/health`)).json()) as { http_inflight: number };
  await until(async () => (await health()).http_inflight === 1);
  // Nothing of what was sent may have reached the log.
  expect(server.log()).not.toContain('Hello');
});
