/** `postern keys` and `postern access` as a user runs them, and a service whose identity does not open. */
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { routes } from '../../gateway/routes.ts';
import { createKey, expired, forge, setSettings } from '../support/access-keys.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';

let home: string;
let server: TestServer | undefined;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-keys-'));
  server = undefined;
});
afterEach(async () => {
  await server?.stop();
  await rm(home, { recursive: true, force: true });
});

const run = (args: readonly string[], input = '') => runCli(args, { SVC_HOME: home }, input);
const cli = (...args: string[]) => run(args);
const inspect = async (token: string) => {
  const { code, stdout } = await run(['keys', 'inspect', '-', '--json'], token);
  return [code, stdout === '' ? '' : (JSON.parse(stdout) as { refusal: string | null }).refusal];
};

test.each([false, true])('makes, lists, looks at and revokes keys (server: %s)', async (isServed) => {
  if (isServed) server = await startServer({ home });
  const made = await cli('keys', 'create', '--agent', '7', '--expires', '12h', '--label', 'my laptop');
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^svc-v1\.[\w-]+\.[0-9a-f]{130}\n$/) });
  expect(made.stderr).toMatch(/for agent 7 .*shown this once/);
  expect(made.stderr).not.toContain('svc-v1');
  const master = await createKey(home, '--expires', 'never');
  const listed = JSON.parse((await cli('keys', 'list', '--json')).stdout) as Record<string, unknown>[];
  expect(listed).toMatchObject([
    { id: master.id, scope: 'master', agent_index: null, expires_at: null, status: 'active' },
    { agent_index: 7, label: 'my laptop', status: 'active', scope: expect.stringMatching(/^0x/), last_used_at: null },
  ]);
  const hours = (Date.parse(String(listed[1]!['expires_at'])) - Date.parse(String(listed[1]!['created_at']))) / 3.6e6;
  expect(hours).toBe(12);
  expect((await cli('keys', 'list')).stdout).toMatch(/active .*for every agent .*without an end.*\n.*"my laptop"\n$/);
  expect(JSON.stringify(listed)).not.toContain('svc-v1');

  expect(await inspect(made.stdout)).toEqual([0, null]);
  expect((await run(['keys', 'inspect', '-'], made.stdout)).stdout).toMatch(/^The key is valid\.[^]*my laptop/);
  expect(await inspect(forge(master))).toEqual([1, 'forged']);
  const id = String(listed[1]!['id']);
  expect(await cli('keys', 'revoke', id)).toMatchObject({ code: 0, stdout: '', stderr: `Revoked: ${id}.\n` });
  expect(await inspect(made.stdout)).toEqual([1, 'revoked']);
  expect(JSON.parse((await cli('keys', 'revoke', '--all', '--json')).stdout)).toEqual({
    revoked: [master.id],
    cut: 0,
    durable: true,
  });
  expect(await cli('keys', 'revoke', '0123456789abcdef')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no key'),
  });
  expect(await cli('audit', 'verify')).toMatchObject({ code: 0, stdout: 'The audit log is intact (4 entries).\n' });
});

test('without an identity there are no keys, and looking for them makes nothing', async () => {
  expect(await cli('keys', 'list', '--json')).toMatchObject({ code: 0, stdout: '[]\n' });
  expect(await cli('keys', 'revoke', '--all')).toMatchObject({ code: 0 });
  expect(await cli('keys', 'revoke', '0123456789abcdef')).toMatchObject({ code: 1 });
  expect(await readdir(home)).toEqual([]);
});

test('a revoked key that has expired since was revoked', async () => {
  const late = await createKey(home, '--expires', '1s');
  expect(await inspect((await expired(home, late)).token)).toEqual([1, 'expired']);
  await cli('keys', 'revoke', late.id);
  expect(await inspect(late.token)).toEqual([1, 'revoked']);
});

test.each([
  [['keys', 'frobnicate']],
  [['keys', 'create', 'svc-v1.secret']],
  [['keys', 'create', '--agent', '4294967296']],
  [['keys', 'create', '--agent', '-1']],
  [['keys', 'create', '--expires', '0d']],
  [['keys', 'create', '--expires', '36501d']],
  [['keys', 'create', '--label', ' x']],
  [['keys', 'create', '--all']],
  [['keys', 'revoke']],
  [['keys', 'revoke', '0123456789abcdef', '--all']],
  [['keys', 'revoke', 'svc-v1.secret']],
  [['keys', 'inspect', 'svc-v1.secret']],
  [['keys', 'inspect']],
  [['access', 'explain', '--from', 'lan']],
  [['access', 'explain', '--route', 'GET /', '--from', 'here']],
  [['access', 'explain', '--route', 'GET /', '--from', 'lan', '--key', 'svc-v1.secret']],
])('%j is misuse: it changes nothing and says no secret', async (args) => {
  const answer = await cli(...args);
  expect(answer).toMatchObject({ code: 2, stdout: '' });
  expect(answer.stderr).not.toContain('secret');
  expect(await readdir(home)).toEqual([]);
});

describe('access explain', () => {
  const explain = async (route: string, from: string, flags: readonly string[] = [], input = '') => {
    const args = ['access', 'explain', '--route', route, '--from', from, '--json', ...flags];
    const { stdout, stderr } = await run(args, input);
    if (stdout === '') throw new Error(stderr);
    const { allowed, view, refusal, status } = JSON.parse(stdout) as Record<string, unknown>;
    return allowed === true ? view : `${String(status)} ${String(refusal)}`;
  };
  const DISPATCH = 'POST /v1/agents/default/run';

  test('answers for callers with and without keys', async () => {
    const agent = await createKey(home, '--agent', '1');
    const shown = ['--key', '-'];
    expect(await explain(DISPATCH, 'loopback')).toBe('full');
    expect(await explain(DISPATCH, 'lan')).toBe('401 unauthenticated');
    expect(await explain(DISPATCH, 'lan', shown, agent.token)).toBe('426 secure_channel_required');
    expect(await explain(DISPATCH, 'lan', [...shown, '--sealed'], agent.token)).toBe('403 forbidden');
    expect(await explain(DISPATCH, 'relay', ['--sealed'])).toBe('403 forbidden');
    const nobodys = 'POST /v1/agents/x/run';
    expect(await explain(nobodys, 'loopback')).toBe('404 agent_not_found');
    expect(await explain(nobodys, 'relay', ['--sealed'])).toBe('404 agent_not_found');
    expect(await explain(nobodys, 'lan', [...shown, '--sealed'], agent.token)).toBe('403 agent_scope_denied');
    expect(await explain('GET /v1/tasks/x', 'lan', shown, agent.token)).toBe('full');
    expect(await explain('GET /v1/api/models', 'lan', shown, agent.token)).toBe('full');
    expect(await explain('GET /health', 'lan')).toBe('summary');
    expect(await explain('GET /admin/keys', 'lan', shown, agent.token)).toBe('403 forbidden');
    await cli('keys', 'revoke', agent.id);
    expect(await explain('GET /v1/models', 'lan', shown, agent.token)).toBe('401 unauthenticated');
    const words = await run(['access', 'explain', '--route', DISPATCH, '--from', 'lan', ...shown], agent.token);
    expect(words.stdout).toMatch(/^refused: 401 unauthenticated\n[^]*key +not valid: it was revoked\./);
    await setSettings(home, { 'access.requireKeyOnLoopback': true });
    expect(await explain('GET /v1/models', 'loopback')).toBe('401 unauthenticated');
  });

  test('answers for programs and names on this machine, and says what it took them for', async () => {
    const as = (...flags: string[]) => explain(DISPATCH, 'loopback', flags);
    expect(await as('--process', 'other')).toBe('401 unauthenticated');
    expect(await as('--host', 'study.local:1337')).toBe('403 foreign_host');
    expect(await as('--host', 'evil.example')).toBe('403 foreign_host');
    expect(await explain('GET /admin/keys', 'loopback', ['--process', 'other'])).toBe('403 forbidden');
    expect(await explain('GET /v1/models', 'loopback', ['--host', 'study.local'])).toBe('full');
    const words = await run(['access', 'explain', '--route', DISPATCH, '--from', 'loopback', '--process', 'other']);
    expect(words.stdout).toMatch(/^process +another user's: a stranger$/m);
    expect(words.stdout).toMatch(/^host +means this machine$/m);
  });

  test('knows every route', async () => {
    const { findTarget } = await import('../../gateway/find-target.ts');
    for (const route of routes) {
      for (const alias of ['', '/v1', '/api', '/v1/api']) {
        expect(findTarget(route.method, alias + route.path.replace(/:\w+|\*$/, 'x') + '?y')?.route).toBe(route);
      }
    }
    expect(findTarget('GET', '/nowhere')).toBe(undefined);
    expect(findTarget('GET', '/tasks/')).toBe(undefined);
  });
});

test('an identity that does not open keeps nobody from what needs no key; callers with one are told to come again', async () => {
  await setSettings(home, { 'access.requireKeyOnLoopback': true });
  const { token } = await createKey(home);
  await rename(join(home, 'vault.json'), join(home, 'elsewhere.json'));
  server = await startServer({ home });
  const ask = (path: string, headers: Record<string, string> = {}) => fetch(server!.url + path, { headers });
  const answer = await ask('/v1/models', { 'x-api-key': token });
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '10']);
  expect(await answer.json()).toMatchObject({ error: { type: 'internal_error', code: 'identity_unavailable' } });
  expect((await ask('/v1/models', { 'x-api-key': 'sk-none' })).status).toBe(401);
  for (const headers of [{}, { 'x-api-key': token }]) expect((await ask('/health', headers)).status).toBe(200);
  expect((await ask('/v1/models', { 'x-postern-run-token': await server.runToken() })).status).toBe(200);
  expect(server.log()).toMatch(/vault\.json is gone\. Put it back/);
  expect(await cli('keys', 'create')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('cannot be checked at the moment'),
  });
  expect(await readdir(home)).not.toContain('vault.json');
});
