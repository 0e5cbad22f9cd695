import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { createHttpClient, type HttpClientOptions } from '../../../core/download/http-client.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}
const redirectTo =
  (location: string): RequestListener =>
  (_request, response) =>
    void response.writeHead(302, { location }).end();

async function get(url: string, options: HttpClientOptions = {}, signal = new AbortController().signal) {
  const answer = await createHttpClient(options).get(new URL(url), { signal });
  const chunks: Uint8Array[] = [];
  for await (const chunk of answer.body) chunks.push(chunk);
  return { ...answer, text: Buffer.concat(chunks).toString() };
}

describe('a token', () => {
  const echo: RequestListener = (request, response) => response.end(String(request.headers.authorization));

  test('goes to its own origin, also after a redirect there, and nowhere else', async () => {
    const other = await serve(echo);
    const hub = await serve((request, response) => {
      if (request.url === '/away') redirectTo(other)(request, response);
      else if (request.url === '/here') redirectTo('/')(request, response);
      else echo(request, response);
    });
    const options = { token: { origin: hub, value: 'secret' } };
    expect((await get(`${hub}/`, options)).text).toBe('Bearer secret');
    expect((await get(`${hub}/here`, options)).text).toBe('Bearer secret');
    expect((await get(`${hub}/away`, options)).text).toBe('undefined');
    expect((await get(other, options)).text).toBe('undefined');
  });
});

describe('where it goes', () => {
  test.each([
    ['http://example.com/', 'only https'],
    ['http://localhost.example.com/', 'only https'],
    ['http://127.0.0.1.example.com/', 'only https'],
    ['ftp://127.0.0.1/', 'only https'],
    ['https://user:word@example.com/', 'no password'],
  ])('not to %s', async (url, words) => {
    const refusal = get(url);
    await expect(refusal).rejects.toMatchObject({ code: 'bad_reference', message: expect.stringContaining(words) });
    await expect(refusal).rejects.not.toThrow('word@');
  });

  test.each([
    ['http://example.com/', 'bad_reference'],
    ['file:///etc/passwd', 'bad_reference'],
    ['https://:0:0/', 'bad_answer'],
  ])('not by a redirect to %s', async (location, code) => {
    await expect(get(await serve(redirectTo(location)))).rejects.toMatchObject({ code });
  });

  test('not round and round', async () => {
    await expect(get(await serve(redirectTo('/')))).rejects.toMatchObject({ code: 'bad_answer' });
  });
});

test('a name that nobody knows, a port that nobody has', async () => {
  const closed = await serve(() => undefined);
  const server = servers.pop()!;
  server.close();
  await expect(get(closed)).rejects.toMatchObject({ code: 'unreachable', message: expect.stringContaining('online?') });
  await expect(get('https://nowhere.invalid/')).rejects.toMatchObject({ code: 'unreachable' });
});

test('silence is not waited for, before the answer and within it', async () => {
  const mute = await serve(() => undefined);
  await expect(get(mute, { silenceMs: 50 })).rejects.toMatchObject({ code: 'interrupted' });
  const stalled = await serve(
    (_request, response) => void response.writeHead(200, { 'content-length': 9 }).write('some'),
  );
  await expect(get(stalled, { silenceMs: 50 })).rejects.toMatchObject({ code: 'interrupted' });
});

test('an answer that is shorter than it says is broken', async () => {
  const short = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': 9 });
    response.write('some', () => response.destroy());
  });
  await expect(get(short)).rejects.toMatchObject({ code: 'interrupted' });
});

test('who stops is told so, and a signal that fired before starts nothing', async () => {
  const mute = await serve(() => undefined);
  const stop = new AbortController();
  const asked = get(mute, {}, stop.signal);
  stop.abort();
  await expect(asked).rejects.toMatchObject({ code: 'stopped' });
  await expect(get(mute, {}, stop.signal)).rejects.toMatchObject({ code: 'stopped' });
});

test("the hash that a hub's redirect names is kept, and nothing that is none", async () => {
  const sha256 = 'ab'.repeat(32);
  const file = await serve((_request, response) => response.writeHead(200, { 'x-linked-etag': '"other"' }).end());
  const hub = await serve((_request, response) => {
    response.writeHead(302, { location: file, 'x-linked-etag': `"${sha256}"` }).end();
  });
  expect((await get(hub)).linked).toEqual({ sha256 });
  expect((await get(file)).linked).toEqual({});
});
