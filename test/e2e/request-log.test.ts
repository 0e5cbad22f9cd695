/** The request log from outside: what a client was answered is in it, and nothing else that it said. */
import { once } from 'node:events';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LoggedRequest } from '../../gateway/request-log/request-log-reader.ts';
import { endless, lastRow, post, readLog, user } from '../support/request-log.ts';
import { rawConnection, rawRequest } from '../support/raw-connection.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';
import { STYLES, tokensTold } from '../support/wire-styles.ts';

/** A request that fetch would not send. */
function send({ port }: TestServer, path: string, options: RequestOptions = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, path, agent: false, ...options }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
    });
    request.once('error', reject).end();
  });
}

const weather = {
  name: 'get_weather',
  description: 'Get the weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

describe.each(Object.entries(STYLES))('%s', (_name, style) => {
  const row = {
    method: 'POST',
    path: style.path,
    route: style.route,
    source: 'http',
    status: 200,
    model: 'foundation',
  };
  test('a whole answer is one row, with the tokens and the end that its client was told of', async () => {
    const before = (await readLog(server)).stats.inferences;
    const response = await post(server, style.path, style.ask);
    const logged = await lastRow(server);
    expect(logged).toMatchObject({
      ...row,
      ...tokensTold(await response.text(), style),
      finish_reason: 'stop',
      error_code: null,
      caller: 'loopback',
      request_id: response.headers.get('x-request-id'),
      request_body: null,
      response_body: null,
    });
    expect(logged.tokens_per_second).toBeGreaterThan(0);
    expect(logged.time_to_first_token_ms).toBeGreaterThan(0);
    expect(logged.duration_ms).toBeGreaterThanOrEqual(logged.time_to_first_token_ms!);
    expect((await readLog(server)).stats.inferences).toBe(before + 1);
  });

  test('so is a streamed one', async () => {
    const before = (await readLog(server)).stats.inferences;
    const response = await post(server, style.path, { ...style.ask, ...style.streamed });
    const tokens = tokensTold(await response.text(), style);
    expect(await lastRow(server)).toMatchObject({
      ...row,
      ...tokens,
      finish_reason: 'stop',
      request_id: response.headers.get('x-request-id'),
    });
    expect((await readLog(server)).stats.inferences).toBe(before + 1);
  });

  test('an answer cut short by its limit', async () => {
    await (await post(server, style.path, { ...style.ask, ...style.limit })).text();
    expect(await lastRow(server)).toMatchObject({ ...row, finish_reason: 'length' });
  });
});

test.each([false, true])('a tool call (stream: %s)', async (stream) => {
  const body = { ...user('What is the weather in Paris?'), tools: [{ type: 'function', function: weather }], stream };
  await (await post(server, '/v1/chat/completions', body)).text();
  expect(await lastRow(server)).toMatchObject({ finish_reason: 'tool_calls', output_tokens: expect.any(Number) });
});

test('counting tokens names its model and is no inference', async () => {
  await (await post(server, '/v1/messages/count_tokens', user('Hello'))).text();
  expect(await lastRow(server)).toMatchObject({ model: 'foundation', finish_reason: null, input_tokens: null });
});

describe('a client that leaves', () => {
  test('in mid-stream', async () => {
    const leave = new AbortController();
    const response = await post(server, '/v1/chat/completions', { ...endless, stream: true }, { signal: leave.signal });
    await response.body!.getReader().read();
    leave.abort();
    const row = await until(async () => {
      const last = await lastRow(server);
      return last.request_id === response.headers.get('x-request-id') && last;
    });
    expect(row).toMatchObject({ status: 200, finish_reason: 'cancelled', error_code: null, output_tokens: null });
    expect(row.input_tokens).toBeGreaterThan(0);
  });

  test('before there is an answer', async () => {
    const leave = new AbortController();
    const answer = post(server, '/v1/chat/completions', endless, { signal: leave.signal }).catch(() => undefined);
    await until(
      async () => ((await (await fetch(`${server.url}/health`)).json()) as { chat_active: boolean }).chat_active,
    );
    leave.abort();
    await answer;
    const { requests } = await until(async () => {
      const page = await readLog(server, 'status=4xx&search=/v1/chat/completions');
      return page.requests.length > 0 && page;
    });
    expect(requests[0]).toMatchObject({ status: 499, finish_reason: 'cancelled', error_code: null });
    // It is no failure of the service, which would have a line there.
    expect(server.log()).not.toContain('request failed');
  });

  // Nobody has its end of the connection by the time that the system is asked whose process it is.
  test.each([
    ['a short body', user('Hello')],
    ['a body that does not fit into one read', user('Hello'.repeat(60_000))],
  ])('at once, having sent all of it: %s', async (name, body) => {
    const request = rawRequest({ path: '/v1/chat/completions', headers: { 'user-agent': name }, body });
    for (let visit = 0; visit < 10; visit += 1) {
      const { socket } = await rawConnection(server.port);
      socket.resume().end(request);
      await once(socket, 'finish');
      socket.destroy();
    }
    const statuses = await until(async () => {
      const { requests } = await readLog(server, 'limit=50');
      const own = requests.filter(({ user_agent: agent }) => agent === name).map(({ status }) => status);
      return own.length === 10 && own;
    });
    // The system may have been asked just before.
    expect(statuses).toContain(499);
    expect(statuses).not.toContain(401);
  });
});

describe('a request that is refused', () => {
  const json = { 'content-type': 'application/json' };
  const remote = { 'x-forwarded-for': '203.0.113.7' };
  test.each<[number, string | null, string, RequestOptions, Partial<LoggedRequest>]>([
    [401, 'unauthenticated', '/v1/chat/completions', { method: 'POST', headers: remote }, { caller: 'anonymous' }],
    [403, 'forbidden', '/admin/status', { headers: remote }, { caller: 'anonymous', route: '/admin/status' }],
    [403, 'cross_site', '/mcp/tools', { headers: { origin: 'https://evil.example' } }, { caller: 'loopback' }],
    [403, 'foreign_host', '/v1/models', { headers: { host: 'evil.example' } }, { route: '/models' }],
    [404, 'not_found', '/nope/at/all?key=x', {}, { route: null, path: '/nope/at/all' }],
    [404, 'model_not_found', '/v1/models/none', {}, { route: '/models/*', model: null }],
    [404, 'not_found', '/nope', { method: 'PROPFIND' }, { method: 'PROPFIND', route: null }],
    [405, 'method_not_allowed', '/v1/models', { method: 'PUT' }, { route: '/models' }],
    [413, 'body_too_large', '/pair', { method: 'POST', headers: { 'content-length': 70_000 } }, { caller: null }],
    [415, 'unsupported_media_type', '/mcp/call', { method: 'POST', headers: { 'content-length': 2 } }, {}],
    [400, 'bad_request', '/v1/chat/completions', { method: 'POST', headers: json }, { finish_reason: null }],
    [400, 'bad_request', '/v1/models/%zz', {}, { route: null }],
    [501, 'not_implemented', '/v1/embeddings', { method: 'POST' }, {}],
  ])('%i %s: %s', async (status, code, path, options, more) => {
    const answer =
      options.headers !== undefined && 'content-length' in options.headers
        ? await sendPart(server, path, options)
        : await send(server, path, options);
    expect(answer).toBe(status);
    expect(await until(async () => (await lastRow(server)).status === status && lastRow(server))).toMatchObject({
      status,
      error_code: code,
      path: path.replace(/\?.*/, ''),
      finish_reason: null,
      ...more,
    });
  });

  test('a preflight is no row', async () => {
    await send(server, '/v1/models', { method: 'OPTIONS', headers: { origin: 'https://a.example' } });
    expect((await readLog(server, 'method=OPTIONS')).requests).toEqual([]);
  });
});

/** Declares a body and sends two bytes of it. */
function sendPart({ port }: TestServer, path: string, options: RequestOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, path, agent: false, ...options }, (response) => {
      resolve(response.statusCode ?? 0);
      request.destroy();
    });
    request.on('error', reject);
    request.write('{}');
  });
}

test('pages of the log hold each row once', async () => {
  const all = (await readLog(server, 'method=POST&limit=1000')).requests.map(({ id }) => id);
  const paged: number[] = [];
  let cursor = '';
  do {
    const page = await readLog(server, `method=POST&limit=7${cursor}`);
    paged.push(...page.requests.map(({ id }) => id));
    cursor = page.next_cursor === undefined ? '' : `&cursor=${page.next_cursor}`;
  } while (cursor !== '');
  expect(paged).toEqual(all);
  expect(all.length).toBeGreaterThan(20);
});

test('a bad parameter is named', async () => {
  const response = await fetch(`${server.url}/admin/requests?limit=many`);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    error: { param: 'limit', message: expect.stringMatching(/^limit: /) },
  });
});

describe('whoever is not the owner on this machine', () => {
  test.each([
    ['GET', '/admin/requests'],
    ['DELETE', '/admin/requests'],
    ['GET', '/metrics'],
  ])('has no %s %s', async (method, path) => {
    const before = (await readLog(server, 'method=POST')).stats.requests;
    const status = (headers: Record<string, string>) => send(server, path, { method, headers });
    expect(await status({ 'x-forwarded-for': '127.0.0.1' })).toBe(403);
    expect(await status({ origin: 'https://evil.example' })).toBe(403);
    expect(await status({ 'sec-fetch-site': 'cross-site' })).toBe(403);
    expect(await status({ host: 'evil.example' })).toBe(403);
    expect(await status({ origin: server.url })).toBe(403);
    expect((await readLog(server, 'method=POST')).stats.requests).toBe(before);
  });
});

test('the name that was asked for is there, whether or not a model answers to it, and no secret in it', async () => {
  const named = async (model: string) => {
    await (await post(server, '/v1/chat/completions', { ...user('Hello'), model, max_tokens: 1 })).text();
    return lastRow(server);
  };
  expect(await named('FOUNDATION')).toMatchObject({ model: 'foundation', requested_model: 'FOUNDATION', status: 200 });
  expect(await named('gpt-9')).toMatchObject({ model: null, requested_model: 'gpt-9', status: 404 });
  expect((await named(`gpt-sk-${'a1B2'.repeat(12)}`)).requested_model).not.toContain('a1B2');
  // What is no name may be anything.
  for (const words of ['a prompt by mistake', 'x'.repeat(101)])
    expect(await named(words)).toMatchObject({ model: null, requested_model: null, status: 404 });
});

test('a prompt that is too long is refused with its numbers, which are in its row', async () => {
  const refused = await post(server, '/v1/chat/completions', user('word '.repeat(9000)));
  const { error } = (await refused.json()) as { error: { message: string } };
  const row = await lastRow(server);
  expect(row).toMatchObject({ status: 400, error_code: 'prompt_too_long', error_message: error.message });
  expect(row.error_message).toMatch(/\d+ tokens.* \d+/);
  expect(row.error_message).not.toContain('word');
});
