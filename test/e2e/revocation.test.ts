/** Revoking an access key, while things go on under it. */
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createKey, setSettings, type MadeKey } from '../support/access-keys.ts';
import { endless, user } from '../support/request-log.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

let home: string;
let server: TestServer;
let key: MadeKey;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-revoke-'));
  await setSettings(home, { 'access.requireKeyOnLoopback': true });
  key = await createKey(home);
  server = await startServer({ home });
});
afterEach(async () => {
  await server.stop();
  await rm(home, { recursive: true, force: true });
});

const cli = (...args: string[]) => runCli(args, { SVC_HOME: home });
const revoke = (id = key.id) => cli('keys', 'revoke', id);
const ask = (path: string, body?: object, { token } = key) =>
  fetch(server.url + path, {
    headers: { authorization: `Bearer ${token}` },
    ...(body && { method: 'POST', body: JSON.stringify({ model: 'foundation', ...body }) }),
  });
const admin = async (path: string, init: RequestInit = {}) =>
  fetch(server.url + path, { ...init, headers: { 'x-postern-run-token': await server.runToken() } });
const inflight = async () => {
  const { inflight: calls } = (await (await admin('/admin/status')).json()) as { inflight: object };
  return Object.keys(calls).length;
};

const { schema } = endless.response_format.json_schema;
const STREAMS = {
  'OpenAI chat': ['/v1/chat/completions', { ...endless, stream: true }, /data: {"error":{.*"authentication_error"/],
  'Ollama chat': ['/api/chat', { ...user('Hello'), format: schema }, /\n{"error":".*access key.*"}\n$/],
  'Open Responses': [
    '/v1/responses',
    { input: 'Hello', stream: true, text: { format: { type: 'json_schema', name: 'long', schema } } },
    /event: (response.failed|error)\ndata: .*access key/,
  ],
} as const;

test.each(Object.entries(STREAMS))('a stream ends in its own words: %s', async (_style, [path, body, words]) => {
  const response = await ask(path, body);
  expect(response.status).toBe(200);
  const reader = response.body!.getReader();
  await reader.read();
  let text = '';
  const ended = (async () => {
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += Buffer.from(part.value);
  })();
  expect(await revoke()).toMatchObject({ code: 0, stderr: `Revoked: ${key.id}.\n` });
  // When revoking has returned, nothing goes on under the key.
  expect(await inflight()).toBe(0);
  await ended;
  expect(text).toMatch(words);
  expect((await ask('/v1/models')).status).toBe(401);
});

test('an answer that is to come whole is a 401; one that waits in line, too', async () => {
  const answers = [ask('/v1/chat/completions', endless), ask('/v1/chat/completions', endless)];
  await until(async () => {
    const { inflight: calls } = (await (await admin('/admin/status')).json()) as {
      inflight: Record<string, { running: number; queued: number }>;
    };
    return calls['foundation']?.running === 1 && calls['foundation'].queued === 1;
  });
  await revoke();
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([401, 401]);
});

function post(path: string): ClientRequest {
  return request(server.url + path, { method: 'POST', headers: { 'x-api-key': key.token } });
}

test('a reader that does not read is cut off, and does not hold up the revocation', async () => {
  const asked = post('/v1/chat/completions');
  asked.end(JSON.stringify({ model: 'foundation', ...endless, stream: true }));
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.pause();
  const broken = once(asked, 'close');
  expect(await revoke()).toMatchObject({ code: 0 });
  expect(await inflight()).toBe(0);
  response.on('error', () => undefined).resume();
  await broken;
});

test('a request that was let in and whose body comes after the revocation is refused', async () => {
  const asked = post('/v1/chat/completions');
  const answered = once(asked, 'response') as Promise<[IncomingMessage]>;
  asked.write(' ');
  // The key has been looked at when its use is noted.
  await until(async () => (await cli('keys', 'list', '--json')).stdout.includes('"last_used_at":"'));
  await revoke();
  asked.end(JSON.stringify({ model: 'foundation', ...user('Hello') }));
  const [response] = await answered;
  expect(response.statusCode).toBe(401);
});

test('another key goes on', async () => {
  const other = await createKey(home, '--agent', '1');
  const response = await ask('/v1/chat/completions', { ...endless, stream: true }, other);
  const reader = response.body!.getReader();
  await reader.read();
  await revoke();
  expect((await reader.read()).done).toBe(false);
  expect(JSON.parse((await cli('keys', 'revoke', '--all', '--json')).stdout)).toEqual({
    revoked: [other.id],
    cut: 0,
    durable: true,
  });
  expect(await inflight()).toBe(0);
});

test('what was revoked stays revoked, whatever happens to the process', async () => {
  await revoke();
  const ended = once(server.process, 'exit');
  server.process.kill('SIGKILL');
  await ended;
  server = await startServer({ home });
  expect((await ask('/v1/models')).status).toBe(401);
  expect(await cli('audit', 'verify')).toMatchObject({ code: 0 });
  expect((await cli('audit', 'list')).stdout).toContain('key_revoked');
});

test('a key made or revoked while no server runs is known to the next one', async () => {
  await server.stop();
  const made = await createKey(home, '--expires', 'never');
  expect(await revoke()).toMatchObject({ code: 0 });
  expect((await revoke()).stderr).toBe('There was nothing to revoke.\n');
  server = await startServer({ home });
  expect((await ask('/v1/models')).status).toBe(401);
  expect((await ask('/v1/models', undefined, made)).status).toBe(200);
});

describe('what keys leave behind', () => {
  test('the log knows them by their ids, and nothing holds a key itself', async () => {
    await setSettings(home, { 'access.requireKeyOnLoopback': true, 'log.bodies': true });
    await server.stop();
    server = await startServer({ home });
    const said = { ...user(`My key is ${key.token}`), max_tokens: 3, stream: true };
    await (await ask('/v1/chat/completions', said)).text();
    await (await ask(`/v1/models/${key.token}?key=${key.token}`)).text();
    await revoke();
    await (await ask('/v1/models')).text();
    const log = await (await admin('/admin/requests?limit=100')).text();
    expect(log).toContain(`"caller":"key ${key.id}"`);
    expect(log).toContain('"unauthenticated"');
    await server.stop();
    const names = await readdir(home);
    const contents = await Promise.all(names.map((name) => readFile(join(home, name), 'latin1')));
    for (const shown of [log, server.log(), ...contents]) {
      for (const part of key.token.split('.').slice(1)) expect(shown).not.toContain(part);
    }
    expect((await cli('audit', 'list')).stdout).toMatch(/refused +reason="revoked" +count=1/);
  });

  test('what one key stored is nothing to another', async () => {
    const other = await createKey(home);
    const stored = (await (await ask('/v1/responses', { input: 'Hello' })).json()) as { id: string };
    expect((await ask(`/v1/responses/${stored.id}`)).status).toBe(200);
    expect((await ask(`/v1/responses/${stored.id}`, undefined, other)).status).toBe(404);
  });
});
