import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { expect, test } from 'vitest';
import type { ConnectOptions } from '../../../clients/sdk/index.ts';
import { clientOf, codeOf, echo, post, sse, start } from '../../support/sealed-client.ts';

test('the official clients stream through it', async () => {
  const gateway = await start(sse);
  const client = clientOf(gateway);
  const openai = new OpenAI({ apiKey: 'secret', baseURL: 'http://anything/v1', fetch: client.fetch });
  const stream = await openai.chat.completions.create({
    model: 'm',
    stream: true,
    messages: [{ role: 'user', content: 'hello' }],
  });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  expect(text).toBe('w0 w1 w2 w3 w4 ');
  const [request] = gateway.requests;
  expect(request).toMatchObject({ method: 'POST', path: '/v1/chat/completions' });
  expect(request!.headers.map(([name]) => name)).toEqual(['accept', 'content-type']);
  expect(JSON.stringify(gateway.requests)).not.toContain('secret');
});

test('the Anthropic and the Ollama client work unchanged', async () => {
  const gateway = await start(({ path }) => ({
    headers: [['content-type', 'application/json']],
    body: JSON.stringify(
      path === '/v1/messages'
        ? { id: 'm', type: 'message', role: 'assistant', content: [{ type: 'text', text: 'hi' }], model: 'm' }
        : { models: [{ name: 'tiny' }] },
    ),
  }));
  const client = clientOf(gateway);
  const anthropic = new Anthropic({ apiKey: 'secret', baseURL: 'http://anything', fetch: client.fetch });
  const message = await anthropic.messages.create({
    model: 'm',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'x' }],
  });
  expect(message.content).toEqual([{ type: 'text', text: 'hi' }]);
  const ollama = new Ollama({ host: 'http://anything', fetch: client.fetch });
  expect((await ollama.list()).models.map(({ name }) => name)).toEqual(['tiny']);
  expect(gateway.seen).toEqual(['session', 'POST /v1/messages', 'GET /api/tags']);
});

test('all kinds of bodies and inputs arrive as fetch would send them', async () => {
  const client = clientOf(await start(echo));
  const sent = async (...args: Parameters<typeof client.fetch>): Promise<Record<string, string>> =>
    (await client.fetch(...args)).json() as Promise<Record<string, string>>;
  const posted = (body: RequestInit['body']): Promise<Record<string, string>> =>
    sent('/x?a=1&b', { method: 'POST', body: body! });

  expect(await posted('text')).toMatchObject({ method: 'POST', path: '/x', query: 'a=1&b', body: 'text' });
  expect(await posted(new TextEncoder().encode('bytes'))).toMatchObject({ body: 'bytes', headers: [] });
  expect(await posted(new TextEncoder().encode('buffer').buffer)).toMatchObject({ body: 'buffer' });
  expect(await posted(new Blob(['blob'], { type: 'a/b' }))).toMatchObject({
    body: 'blob',
    headers: [['content-type', 'a/b']],
  });
  expect(await posted(new URLSearchParams({ q: 'a b' }))).toMatchObject({ body: 'q=a+b' });
  expect(await posted(new Blob(['stream']).stream())).toMatchObject({ body: 'stream' });
  const form = new FormData();
  form.set('file', new Blob(['content']), 'name.txt');
  const { headers, body } = await posted(form);
  const boundary = /boundary=(.+)$/u.exec(new Map(headers as never).get('content-type') as string)?.[1];
  expect(body).toContain(`--${boundary}`);
  expect(body).toContain('content');

  expect(
    await sent(
      new Request('http://else/p', { method: 'PUT', body: 'r', headers: { cookie: 'c', range: 'bytes=0-1' } }),
    ),
  ).toMatchObject({
    method: 'PUT',
    path: '/p',
    body: 'r',
    headers: [
      ['content-type', 'text/plain;charset=UTF-8'],
      ['range', 'bytes=0-1'],
    ],
  });
  expect(await sent(new URL('http://user.example/a%20b#fragment'))).toMatchObject({
    method: 'GET',
    path: '/a%20b',
    body: '',
  });
  await expect(client.fetch('/x', { body: 'x' })).rejects.toThrow(TypeError);
});

test('a long body goes there and back, over many records', async () => {
  const long = new Uint8Array(300_001).map((_, index) => index % 251);
  const client = clientOf(await start(({ body }) => ({ body })));
  const response = await client.fetch('/x', { method: 'POST', body: long });
  expect(Buffer.compare(Buffer.from(await response.arrayBuffer()), long)).toBe(0);
  const small = clientOf(await start(echo, { maxBodyBytes: 10 }));
  expect(await codeOf(small.fetch('/x', { method: 'POST', body: long }))).toBe('body_too_large');
});

test('an answer that comes byte by byte is the same', async () => {
  const gateway = await start(sse);
  const client = clientOf(gateway);
  const whole = await (await client.fetch('/v1/x', post)).text();
  gateway.meddle('session', { do: 'crumble' });
  gateway.meddle('call', { do: 'crumble' });
  const crumbled = clientOf(gateway);
  expect(await (await crumbled.fetch('/v1/x', post)).text()).toBe(whole);
});

test.each([204, 205, 304])('status %i has no body', async (status) => {
  const response = await clientOf(await start(() => ({ status, headers: [['etag', 'x']] }))).fetch('/x');
  expect([response.status, response.body, response.headers.get('etag')]).toEqual([status, null, 'x']);
});

test('a HEAD has no body, whatever the gateway sends', async () => {
  const response = await clientOf(await start(() => ({ body: 'text' }))).fetch('/x', { method: 'HEAD' });
  expect([response.status, response.body]).toEqual([200, null]);
});

test('what nobody reads is not fetched', async () => {
  const piece = new Uint8Array(60_000);
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (let count = 0; count < 2000; count++) yield piece;
  }
  let received = 0;
  const counting: ConnectOptions['fetch'] = async (url, init) => {
    const response = await fetch(url, init);
    const counter = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        received += chunk.length;
        controller.enqueue(chunk);
      },
    });
    return new Response(response.body!.pipeThrough(counter));
  };
  const client = clientOf(await start(() => ({ body: endless() })), { fetch: counting });
  const response = await client.fetch('/x');
  const reader = response.body!.getReader();
  await reader.read();
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(received).toBeLessThan(1_000_000);
  await reader.cancel();
});

test('an answer ends with its last record, and its connection is left whole for another call', async () => {
  const gateway = await start(sse);
  const signals: (AbortSignal | null | undefined)[] = [];
  const neverEnding: ConnectOptions['fetch'] = async (url, init) => {
    const response = await fetch(url, init);
    if (!url.endsWith('/secure/call')) return response;
    signals.push(init.signal);
    const flush = (): Promise<void> => new Promise(() => undefined);
    return new Response(response.body!.pipeThrough(new TransformStream({ flush })));
  };
  const client = clientOf(gateway, { fetch: neverEnding });
  expect(await (await client.fetch('/v1/x', post)).text()).toContain('[DONE]');
  expect(signals.map((signal) => signal?.aborted)).toEqual([false]);
});

test.each(['//admin/status', '/\\admin/status', ' //admin/status', '/\t/admin', 'ftp://home/x', 'data:,x'])(
  '%j is neither a path nor an address, and nothing is sent',
  async (input) => {
    const gateway = await start(echo);
    await expect(clientOf(gateway).fetch(input)).rejects.toThrow(TypeError);
    expect(gateway.seen).toEqual([]);
  },
);

test('a path keeps its slashes behind an origin', async () => {
  const gateway = await start(echo);
  const { fetch } = clientOf(gateway);
  expect(await (await fetch('http://any//admin/x')).json()).toMatchObject({ path: '//admin/x' });
});
