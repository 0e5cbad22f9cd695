/** Every client reads an error in its own style, also where there is no route that could say which that is. */
import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { rawConnection } from '../support/raw-connection.ts';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.stop());

const STRANGER = { via: '1.1 proxy' };
const OPENAI = {
  error: { message: expect.any(String), type: expect.any(String), code: expect.any(String), param: null },
};
const ANTHROPIC = {
  type: 'error',
  error: { message: expect.any(String), type: expect.stringMatching(/_error$|^request_too_large$/) },
};
const OLLAMA = { error: expect.any(String) };

async function errorOf(path: string, init: RequestInit = {}): Promise<[number, unknown]> {
  const answer = await fetch(server.url + path, init);
  return [answer.status, await answer.json()];
}

describe.each<[string, unknown, string, string]>([
  ['OpenAI', OPENAI, '/v1', '/chat/completions'],
  ['Anthropic', ANTHROPIC, '/v1/messages', ''],
  ['Ollama', OLLAMA, '/api', '/chat'],
])('%s', (_, shape, base, route) => {
  const path = base + route;
  test.each<[number, string, RequestInit]>([
    [400, path, { method: 'POST', body: '{' }],
    [401, path, { method: 'POST', headers: STRANGER }],
    [404, `${base}/nowhere`, { method: 'POST', body: '{}' }],
    [405, path, { method: 'DELETE' }],
    [405, path, { method: 'PROPFIND' }],
    [413, path, { method: 'POST', body: new Uint8Array(32 * 1024 * 1024 + 1) }],
  ])('%i: %s', async (status, address, init) => {
    expect(await errorOf(address, init)).toEqual([status, shape]);
  });

  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\n`;
  test.each([
    ['no Host', 400, `POST ${path} HTTP/1.1\r\n\r\n`],
    ['a header that is none', 400, `${head}no colon\r\n\r\n`],
    ['two lengths', 400, `${head}content-length: 1\r\ncontent-length: 2\r\n\r\n{}`],
    ['a method that nobody knows', 501, `FROBNICATE ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`],
    ['headers of 64 KiB', 431, `${head}x: ${'x'.repeat(65_536)}\r\n\r\n`],
    ['chunks that are none', 400, `${head}transfer-encoding: chunked\r\n\r\nxyz\r\n`],
  ])('what is no request: %s', async (_name, status, bytes) => {
    const connection = await rawConnection(Number(new URL(server.url).port));
    connection.socket.write(bytes);
    const [first = '', body = ''] = (await connection.all()).split('\r\n\r\n', 2);
    expect([Number(first.split(' ')[1]), JSON.parse(body)]).toEqual([status, shape]);
  });
});

test.each([
  ['/v1/embeddings', OPENAI],
  ['/v1/audio/transcriptions', OPENAI],
  ['/api/embeddings', OLLAMA],
  ['/api/embed', OLLAMA],
])('501: %s, which is planned', async (path, shape) => {
  expect(await errorOf(path, { method: 'POST', body: '{}' })).toEqual([501, shape]);
});

test('a client that shows Anthropic’s header reads its errors so at every address', async () => {
  const headers = { 'anthropic-version': '2023-06-01' };
  expect(await errorOf('/v1/nowhere', { headers })).toEqual([404, ANTHROPIC]);
  expect(await errorOf('/v1/models', { headers: { ...headers, ...STRANGER } })).toEqual([401, ANTHROPIC]);
  expect(await errorOf('/v1/embeddings', { method: 'POST', headers })).toEqual([501, ANTHROPIC]);
});

describe('what is not there yet is asked for once', () => {
  const requests: string[] = [];
  const counted: typeof fetch = (input, init) => {
    requests.push(input instanceof Request ? input.url : String(input));
    return fetch(input, init);
  };
  beforeEach(() => void requests.splice(0));

  test('by OpenAI’s client', async () => {
    const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'x', fetch: counted });
    await expect(openai.embeddings.create({ model: 'm', input: 'x' })).rejects.toMatchObject({ status: 501 });
    expect(requests).toHaveLength(1);
  });

  test('by Anthropic’s', async () => {
    const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'x', fetch: counted });
    await expect(anthropic.post('/v1/embeddings', { body: {} })).rejects.toMatchObject({ status: 501 });
    expect(requests).toHaveLength(1);
  });

  test('also where no request could be read', async () => {
    const connection = await rawConnection(Number(new URL(server.url).port));
    connection.socket.write('FROBNICATE / HTTP/1.1\r\nhost: localhost\r\n\r\n');
    expect(await connection.all()).toMatch(/^HTTP\/1\.1 501 .*\r\nx-should-retry: false\r\n/s);
  });
});

describe('the official clients say what went wrong', () => {
  test('OpenAI’s', async () => {
    const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'x', maxRetries: 0 });
    await expect(openai.files.list()).rejects.toThrow(/^404 There is nothing at this address/);
  });

  test('Anthropic’s', async () => {
    const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'x', maxRetries: 0 });
    await expect(anthropic.messages.batches.list()).rejects.toMatchObject({
      status: 404,
      error: { type: 'error', error: { type: 'not_found_error', message: expect.stringMatching(/^There is nothing/) } },
    });
  });

  test('Ollama’s', async () => {
    const ollama = new Ollama({ host: server.url });
    await expect(ollama.delete({ model: 'm' })).rejects.toThrow(/^The model 'm' is not installed/);
    await expect(ollama.embed({ model: 'm', input: 'x' })).rejects.toThrow(/does not have this endpoint yet/);
  });
});

describe('an address that a client put together wrong', () => {
  test.each([
    ['/v1/v1/models', /more than one prefix.*base URL/],
    ['/api/v1/chat/completions', /more than one prefix.*base URL/],
    ['//v1/models', /two slashes in a row/],
    ['/v1//models', /two slashes in a row/],
    ['/v1/nowhere?key=hush', /openapi\.json/],
  ])('%s is told what is wrong with it', async (path, message) => {
    const [status, body] = await errorOf(path);
    const text = JSON.stringify(body);
    expect([status, text]).toEqual([404, expect.stringMatching(message)]);
    expect(text).not.toContain('hush');
  });

  test('a slash at its end is no matter, and no way round policy', async () => {
    expect((await fetch(`${server.url}/v1/models/`)).status).toBe(200);
    expect((await fetch(`${server.url}/admin/status/`, { headers: STRANGER })).status).toBe(403);
    expect((await fetch(`${server.url}/v1/models//`)).status).toBe(404);
  });
});
