import type { RequestListener, ServerResponse } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { MAX_PIPELINED } from '../../gateway/connection.ts';
import { createListener, type Listener } from '../../gateway/listener.ts';
import { createFakeTime } from '../core/fake-time.ts';
import { rawConnection, rawRequest } from '../support/raw-connection.ts';
import { until } from '../support/wait.ts';

let listener: Listener | undefined;
afterEach(async () => {
  const closed = listener?.close();
  listener?.cut();
  await closed;
});

async function serve(handle: RequestListener, options: { readonly unreadAnswerMs?: number } = {}) {
  const time = createFakeTime(0);
  const listening = createListener({ setTimer: time.setTimer, ...options });
  listener = listening;
  const { port } = await listening.listen({ hosts: ['127.0.0.1'], port: 0, handle });
  return { time, port, counts: () => listening.counts() };
}

const GET = rawRequest({ path: '/' });

test('a request begins when the one before it is answered, and not before', async () => {
  const begun: ServerResponse[] = [];
  const { port, counts } = await serve((_request, response) => void begun.push(response));
  const { socket, receives } = await rawConnection(port);
  socket.write(GET.repeat(3));
  for (let at = 1; at <= 3; at++) {
    await until(() => begun.length === at);
    expect(counts()).toEqual({ requests: 1, sockets: 1 });
    begun.at(-1)!.end(`answer ${at}`);
    await receives(new RegExp(`answer ${at}`));
  }
  await until(() => counts().requests === 0);
});

test('more requests ahead of an answer than may wait are told so at once, and none of them is answered', async () => {
  let begun = 0;
  const { port, counts } = await serve(() => void (begun += 1));
  const one = await rawConnection(port);
  one.socket.write(GET.repeat(1 + MAX_PIPELINED));
  await until(() => counts().requests === 1);
  const other = await rawConnection(port);
  other.socket.write(GET.repeat(2 + MAX_PIPELINED));
  const text = await other.all();
  expect(text).toMatch(/^HTTP\/1\.1 429 [^]*\r\nconnection: close\r\n/i);
  expect(JSON.parse(text.split('\r\n\r\n')[1]!)).toMatchObject({ error: { code: 'rate_limited' } });
  await until(() => counts().sockets === 1);
  expect({ begun, ...counts() }).toEqual({ begun: 2, requests: 1, sockets: 1 });
});

test('an answer that has begun is cut by them, and nothing stands in the middle of it', async () => {
  const { port, counts } = await serve((_request, response) => void response.write('it begins'));
  const { socket, receives, all } = await rawConnection(port);
  socket.write(GET);
  await receives(/it begins/);
  socket.write(GET.repeat(1 + MAX_PIPELINED));
  expect(await all()).toMatch(/it begins\r\n$/);
  await until(() => counts().sockets === 0);
});

test('a connection that is not read, because the body of a waiting request fills it, is cut after a minute', async () => {
  const { port, time, counts } = await serve(() => undefined);
  const { socket, all } = await rawConnection(port);
  socket.write(GET + rawRequest({ method: 'POST', path: '/', headers: { 'content-length': '9000000' } }));
  socket.write(Buffer.alloc(8_000_000));
  await until(() => time.pending() === 1);
  time.advance(59_999);
  expect(counts()).toEqual({ requests: 1, sockets: 1 });
  time.advance(1);
  expect(await all()).toBe('');
  await until(() => counts().sockets === 0);
  expect(counts().requests).toBe(0);
});

test('a client that half-closed is probed until its answer begins, and gets it', async () => {
  let answering: ServerResponse | undefined;
  const { port, time } = await serve((_request, response) => void (answering = response));
  const { socket, text, receives, all } = await rawConnection(port);
  socket.end(GET);
  for (let probes = 1; probes <= 3; probes++) {
    await until(() => time.pending() === 1);
    time.advance(250 * 2 ** (probes - 1));
    await receives(new RegExp(`^(HTTP/1.1 102 Processing\r\n\r\n){${probes}}$`));
  }
  answering!.write('the answer');
  await receives(/the answer/);
  const before = text();
  await until(() => time.pending() === 1);
  time.advance(60_000);
  answering!.end(' ends');
  expect(await all()).toMatch(/ends/);
  expect(text().slice(before.length)).not.toContain('102');
});

test('a client of HTTP/1.0 that half-closed is not probed, and has a minute', async () => {
  const { port, time, counts } = await serve(() => undefined);
  const { socket, all } = await rawConnection(port);
  socket.end(rawRequest({ path: '/', version: '1.0' }));
  await until(() => time.pending() === 1);
  time.advance(59_999);
  expect(counts().requests).toBe(1);
  time.advance(1);
  expect(await all()).toBe('');
});

test('an answer of which nothing is taken is cut, and one that is being made is not', async () => {
  const { port, counts } = await serve(
    (request, response) => {
      if (request.url === '/large') response.write(Buffer.alloc(64 * 1024 * 1024));
    },
    { unreadAnswerMs: 100 },
  );
  const waiting = await rawConnection(port);
  waiting.socket.write(GET);
  await until(() => counts().requests === 1);
  const { socket } = await rawConnection(port);
  socket.pause();
  socket.write(rawRequest({ path: '/large' }));
  await until(() => counts().requests === 2);
  await until(() => counts().sockets === 1);
  expect(counts()).toEqual({ requests: 1, sockets: 1 });
});
