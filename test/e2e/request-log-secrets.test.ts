/** What the request log, the metrics and the terminal hold of what clients say: no key ever, no prompt unasked. */
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { openRequestLog } from '../../gateway/request-log/request-log.ts';
import { lastRow, post, readLog, user } from '../support/request-log.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';
import { question, STYLES } from '../support/wire-styles.ts';

let home: string;
let server: TestServer;

async function begin(settings: object = {}): Promise<void> {
  home = await mkdtemp(join(tmpdir(), 'postern-log-'));
  await writeFile(join(home, 'settings.json'), JSON.stringify(settings));
  server = await startServer({ home });
}
afterEach(async () => {
  await server.stop();
  await rm(home, { recursive: true, force: true });
});

async function filesWith(words: string): Promise<readonly string[]> {
  const names = await readdir(home);
  const contents = await Promise.all(names.map((name) => readFile(join(home, name))));
  return names.filter((_, index) => contents[index]!.includes(words));
}

const PROMPT = 'canary-prompt-7f3a';
const KEYS = {
  bearer: 'canary-bearer-91c2',
  apiKey: 'canary-x-api-key-55d0',
  query: 'canary-query-08ee',
  body: 'canary-body-key-d41d',
  shaped: 'sk-canary-shaped-aa10',
  cookie: 'canary-cookie-12ab',
};
const headers = {
  authorization: `Bearer ${KEYS.bearer}`,
  'x-api-key': KEYS.apiKey,
  cookie: `session=${KEYS.cookie}`,
  'user-agent': `agent (${KEYS.shaped})`,
};

/** Keys and prompts in every place, in requests that are answered and in some that are refused. */
async function sayCanaries(): Promise<void> {
  const words = `${PROMPT} ${KEYS.shaped} ${KEYS.bearer}`;
  const more = { api_key: KEYS.body, metadata: { password: KEYS.body } };
  for (const { path, ask, streamed } of Object.values(STYLES)) {
    const said = JSON.parse(JSON.stringify(ask).replace(question, words)) as object;
    const url = `${path}?key=${KEYS.query}`;
    for (const body of [said, { ...said, ...streamed }]) {
      const response = await post(server, url, { ...body, ...more }, { headers });
      expect([path, response.status, (await response.text()).length > 0]).toEqual([path, 200, true]);
    }
    await (await post(server, url, { ...said, ...more, model: words }, { headers })).text();
    await (await fetch(server.url + url, { method: 'POST', body: `{"${words}`, headers })).text();
  }
  await (await fetch(`${server.url}/v1/models/${KEYS.shaped}?token=${KEYS.query}`, { headers })).text();
  await (await fetch(`${server.url}/nope/${KEYS.bearer}`, { headers })).text();
}

/** Everything that this server shows to anybody, but for the answers themselves. */
async function shown(): Promise<string> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  return [server.log(), metrics, JSON.stringify(await readLog(server, 'limit=1000'))].join('\n');
}

test('no prompt and no key is kept or told anywhere', async () => {
  await begin();
  await sayCanaries();
  expect((await readLog(server, 'search=REDACTED')).requests.length).toBeGreaterThan(0);
  for (const secret of [PROMPT, ...Object.values(KEYS), 'canary']) {
    expect([secret, await filesWith(secret)]).toEqual([secret, []]);
    expect(await shown()).not.toContain(secret);
  }
});

test('bodies, where the owner asks for them: prompts are kept, keys are not', async () => {
  await begin({ 'log.bodies': true });
  await sayCanaries();
  for (const secret of Object.values(KEYS)) {
    expect([secret, await filesWith(secret)]).toEqual([secret, []]);
    expect(await shown()).not.toContain(secret);
  }
  const { requests } = await readLog(server, 'method=POST&status=2xx&limit=1000');
  expect(requests).toHaveLength(12);
  for (const row of requests) {
    expect(row.request_body).toContain(PROMPT);
    expect(row.request_body).toContain('[REDACTED]');
    expect(row.response_body).not.toBe(null);
  }
});

test('a kept body is cut, of a stream it is what the model said, and administration has none', async () => {
  await begin({ 'log.bodies': true });
  await (
    await post(server, '/v1/chat/completions', { ...user('Hello'), metadata: { note: 'x'.repeat(10_000) } })
  ).text();
  expect((await lastRow(server)).request_body).toHaveLength(4096);
  await (await post(server, '/v1/chat/completions', { ...user('Reply with exactly: pong'), stream: true })).text();
  expect(await lastRow(server)).toMatchObject({ response_body: 'pong' });
  const { requests } = await readLog(server, 'search=/admin/requests');
  expect(requests[0]).toMatchObject({ request_body: null, response_body: null });
});

test('emptying it takes everything out of the files, and is the first row of what follows', async () => {
  await begin({ 'log.bodies': true });
  for (let n = 0; n < 3; n += 1) await (await post(server, '/canary-path', user('canary'))).text();
  await (await post(server, '/v1/chat/completions', user('canary'))).text();
  expect(await filesWith('canary')).not.toEqual([]);
  const response = await fetch(`${server.url}/admin/requests`, { method: 'DELETE' });
  expect(await response.json()).toEqual({ deleted: 4 });
  expect((await readLog(server)).requests).toMatchObject([{ method: 'DELETE', path: '/admin/requests' }]);
  expect(await filesWith('canary')).toEqual([]);
});

test.each([false, true])('what was answered is written soon, and survives kill -9 (stream: %s)', async (stream) => {
  await begin();
  const ended = once(server.process, 'exit');
  const response = await post(server, '/v1/chat/completions', { ...user('Hello'), stream });
  await response.text();
  const log = openRequestLog(home)!;
  await until(() => log.reader.lastId() > 0);
  server.process.kill('SIGKILL');
  await ended;
  expect(log.reader.list({}, { limit: 9 })).toMatchObject([
    { path: '/v1/chat/completions', finish_reason: 'stop', request_id: response.headers.get('x-request-id') },
  ]);
  log.close();
});
