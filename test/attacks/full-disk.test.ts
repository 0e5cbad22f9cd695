/** A disk that is really full, under a service that runs: a file system of a few MiB, and a file that takes all of it. */
import { execFileSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { connect, pair, type PairOptions, type SecretStorage } from '../../clients/sdk/index.ts';
import { has, tinyDisks } from '../support/requirements.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const KEYS = 12;

let home: string;
let server: TestServer | undefined;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-full-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m,mode=700', 'tmpfs', home]);
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
  execFileSync('umount', [home]);
  await rm(home, { recursive: true });
});

const filler = () => join(home, 'filler');
const makeRoom = () => rm(filler());
/** What a service says that writes its words to the same disk. */
const log = () => join(home, 'service.log');
const said = () => readFile(log(), 'utf8').catch(() => '');
const cli = (...args: string[]) => runCli(args, { SVC_HOME: home });

/** Down to the last byte. */
function fill(path = filler()): void {
  for (let bytes = 65_536; bytes >= 1;) {
    try {
      appendFileSync(path, Buffer.alloc(bytes));
    } catch {
      bytes = Math.floor(bytes / 2);
    }
  }
}

async function start(within: readonly string[] = []): Promise<TestServer> {
  // A revoked key is seen to be refused from here, too.
  const settings = { 'access.requireKeyOnLoopback': true };
  await writeFile(join(home, 'settings.json'), JSON.stringify(settings), { mode: 0o600 });
  const started = await startServer({ home, within });
  server = started;
  await until(async () => (started.log() + (await said())).includes('Secrets are in'));
  return started;
}

async function asOwner(of: TestServer, method: string, path: string, body?: object): Promise<Answer> {
  const response = await fetch(`${of.url}${path}`, {
    method,
    headers: { 'x-postern-run-token': await of.runToken(), 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

interface Key {
  readonly id: string;
  readonly token: string;
}

async function makeKey(of: TestServer): Promise<Key> {
  const { status, body } = await asOwner(of, 'POST', '/admin/keys', {});
  expect(status).toBe(201);
  return { id: String(body['id']), token: String(body['token']) };
}

const modelsWith = async ({ url }: TestServer, { token }: Key): Promise<number> =>
  (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })).status;
const healthOf = async (of: TestServer) => (await asOwner(of, 'GET', '/health')).body;

/** The last free pages of the database's own files are used up by requests that are logged. */
async function untilDegraded(of: TestServer): Promise<void> {
  await until(async () => (await healthOf(of))['status'] === 'degraded');
}

const chat = { model: 'foundation', max_tokens: 2, messages: [{ role: 'user', content: 'hello' }] };

describe.runIf(has(tinyDisks))('a disk that is full', () => {
  test('does not end the service: it answers, says that it is degraded, and heals when there is room', async () => {
    const running = await start();
    const key = await makeKey(running);
    fill();
    await untilDegraded(running);
    expect(await healthOf(running)).toMatchObject({
      status: 'degraded',
      degraded: [{ reason: 'storage_full', since: expect.any(String) }],
    });
    expect(await asOwner(running, 'POST', '/v1/chat/completions', chat)).toMatchObject({ status: 200 });
    expect(await asOwner(running, 'GET', '/api/tags')).toMatchObject({ status: 200 });
    expect(await modelsWith(running, key)).toBe(200);
    await makeRoom();
    await until(async () => (await healthOf(running))['status'] === 'healthy');
    const { body } = await asOwner(running, 'POST', '/v1/responses', { model: 'foundation', input: 'hi' });
    expect(body['store']).toBe(true);
    expect((await asOwner(running, 'GET', `/v1/responses/${String(body['id'])}`)).status).toBe(200);
    expectNoStack(running.log());
  });

  test('does not end a service whose words go to the same disk, and they are heard again when there is room', async () => {
    const running = await start(['bash', '-c', 'exec "$@" 2>>"$0"', log()]);
    fill();
    fill(log());
    await untilDegraded(running);
    expect(await said()).not.toContain("can't be written");
    expect(await asOwner(running, 'POST', '/v1/chat/completions', chat)).toMatchObject({ status: 200 });
    await makeRoom();
    await until(async () => (await healthOf(running))['status'] === 'healthy');
    expect(await said()).toContain('can be written again');
  });

  test('refuses what would have to be kept, in words, and keeps what it has promised', async () => {
    const running = await start();
    fill();
    await untilDegraded(running);
    const made: Key[] = [];
    let refused: Answer | undefined;
    while (refused === undefined) {
      const { status, body } = await asOwner(running, 'POST', '/admin/keys', {});
      if (status === 201) made.push({ id: String(body['id']), token: String(body['token']) });
      else refused = { status, body };
    }
    expect(refused).toEqual({
      status: 507,
      body: { error: expect.objectContaining({ code: 'storage_full', type: 'insufficient_resources' }) },
    });
    expect(await asOwner(running, 'POST', '/admin/invites', {})).toMatchObject({ status: 507 });
    for (const command of [
      ['keys', 'create'],
      ['invite', '--no-wait'],
      ['settings', 'set', 'server.port', '4001'],
    ]) {
      const { code, stderr } = await cli(...command);
      expectNoStack(stderr);
      if (command[0] !== 'invite') expect([code, stderr]).toEqual([1, expect.stringMatching(/disk .*full/)]);
    }
    for (const key of made) expect(await modelsWith(running, key)).toBe(200);
    await makeRoom();
    await until(async () => (await healthOf(running))['status'] === 'healthy');
    for (const key of [...made, await makeKey(running)]) expect(await modelsWith(running, key)).toBe(200);
    expectNoStack(running.log());
  });

  test('keeps no paired device from its models, and tells it what was not done', async () => {
    const running = await start();
    const newInvite = async (): Promise<string> =>
      String((await asOwner(running, 'POST', '/admin/invites', {})).body['code']);
    const client = connect(await pair(await newInvite(), deviceHere()));
    onTestFinished(() => client.close());
    const send = (path: string, body: object, method = 'POST') =>
      client.fetch(`http://home${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const storage = deviceHere();
    const invites = [await newInvite(), await newInvite(), await newInvite()];
    fill();
    await untilDegraded(running);
    const statuses = new Set<number>();
    for (let calls = 0; calls < 100 && !statuses.has(507); calls++) {
      statuses.add((await send('/mcp/call', {})).status);
    }
    expect([...statuses].at(-1)).toBe(507);
    for (let calls = 0; calls < 20; calls++) expect((await send('/v1/chat/completions', chat)).status).toBe(200);
    const answered = await send('/v1/responses', { model: 'foundation', input: 'hi' });
    expect([answered.status, await answered.json()]).toEqual([200, expect.objectContaining({ store: false })]);
    let refused: unknown;
    let invite = '';
    for (let next = invites.shift(); next !== undefined && refused === undefined; next = invites.shift()) {
      invite = next;
      refused = await pair(invite, storage).then(
        () => undefined,
        (error: unknown) => error,
      );
    }
    expect(refused).toMatchObject({
      code: 'storage_full',
      message: expect.stringMatching(/disk of the gateway is full/),
    });
    await makeRoom();
    await until(async () => (await healthOf(running))['status'] === 'healthy');
    expect((await send('/mcp/call', {})).status).toBe(501);
    expect(await pair(invite, storage)).toMatchObject({ gatewayId: expect.any(String) });
    expectNoStack(running.log());
  });

  test('lets a key be revoked at once, says that this is not durable yet, and makes it so when there is room', async () => {
    const running = await start();
    const keys: Key[] = [];
    for (let count = 0; count < KEYS; count++) keys.push(await makeKey(running));
    const spared = await makeKey(running);
    fill();
    await untilDegraded(running);
    const durable: unknown[] = [];
    for (const key of keys.slice(1)) {
      const { status, body } = await asOwner(running, 'DELETE', `/admin/keys/${key.id}`);
      expect([status, body]).toEqual([
        body['durable'] === true ? 200 : 202,
        {
          ...{ id: key.id, revoked: true, already: false, cut: 0, durable: expect.any(Boolean) },
          ...(body['durable'] === false && { reason: 'storage_full' }),
        },
      ]);
      durable.push(body['durable']);
      expect(await modelsWith(running, key)).toBe(401);
    }
    expect(durable).toContain(false);
    const { code, stderr, stdout } = await cli('keys', 'revoke', keys[0]!.id, '--json');
    expect(JSON.parse(stdout)).toEqual({ revoked: [keys[0]!.id], cut: 0, durable: false });
    expect(code).toBe(1);
    expect(stderr).toMatch(/\(storage_full\).*what was revoked is valid again\. Make room on the disk/);
    expect(await modelsWith(running, spared)).toBe(200);
    await makeRoom();
    await until(async () => (await healthOf(running))['status'] === 'healthy');
    running.process.kill('SIGKILL');
    const again = await start();
    for (const key of keys) expect(await modelsWith(again, key)).toBe(401);
    expect(await modelsWith(again, spared)).toBe(200);
    expect(await cli('audit', 'verify')).toMatchObject({ code: 0 });
    expectNoStack(running.log());
  });

  test('keeps a start from happening with words, and not the next one', async () => {
    fill();
    expect(await cli('serve', '--port', '0')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^postern: the disk that holds \S+ is full \((ENOSPC|SQLITE_FULL)\)\. Make room/),
    });
    await makeRoom();
    await start();
  });
});

function deviceHere(): PairOptions {
  const entries = new Map<string, string>();
  const storage: SecretStorage = {
    read: async (name) => entries.get(name),
    write: async (name, text) => void entries.set(name, text),
    erase: async (name) => void entries.delete(name),
  };
  return { device: { name: 'a phone', platform: 'test' }, storage };
}

function expectNoStack(words: string): void {
  expect(words).not.toMatch(/^\s+at |internal error|Unhandled|node:internal/m);
}
