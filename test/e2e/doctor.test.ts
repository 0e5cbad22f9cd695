/** `postern doctor` as a user runs it: with the service running and not, and with something wrong. */
import { once } from 'node:events';
import { chmod, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCli, startServer } from '../support/server.ts';

interface Told {
  readonly code: number | null;
  readonly healthy: boolean;
  /** Of each check by its name. */
  readonly states: Readonly<Record<string, string>>;
  readonly text: string;
}

let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-doctor-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

async function doctor(environment: Readonly<Record<string, string>> = {}): Promise<Told> {
  const { code, stdout } = await runCli(['doctor', '--json'], { SVC_HOME: home, SVC_PORT: '0', ...environment });
  const { healthy, checks } = JSON.parse(stdout) as { healthy: boolean; checks: { name: string; state: string }[] };
  return { code, healthy, states: Object.fromEntries(checks.map(({ name, state }) => [name, state])), text: stdout };
}

test('nothing is wrong with an empty home, and nothing is made there', async () => {
  await rm(home, { recursive: true });
  expect(await doctor()).toMatchObject({ code: 0, healthy: true, states: { settings: 'ok', home: 'ok', port: 'ok' } });
  await expect(chmod(home, 0o700)).rejects.toThrow('ENOENT');
});

test('a check is a line, with its remedy below', async () => {
  const { code, stdout } = await runCli(['doctor'], { SVC_HOME: home, SVC_PORT: '0' });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ok {7}settings {3}\S.*\n/);
  expect(stdout).toMatch(/^warning {2}web pages {2}\S.*\n {20}\S.*server\.allowedOrigins/m);
});

test('of a running service the port is its own', async () => {
  const server = await startServer({ home });
  try {
    const { states, text } = await doctor({ SVC_PORT: String(server.port) });
    expect(states).toMatchObject({ port: 'ok' });
    expect(text).toContain(`${server.port}, where the service runs`);
  } finally {
    await server.stop();
  }
});

test.each(['127.0.0.1', '::1'])('a port that another program has at %s has failed', async (host) => {
  const other = createServer().listen(0, host);
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const told = await doctor({ SVC_PORT: String(port) });
  other.close();
  expect(told).toMatchObject({ code: 1, healthy: false, states: { port: 'failed' } });
  expect(told.text).toContain(`${host} port ${port}`);
});

test.each([
  [0o755, 'warning', 0],
  [0o777, 'failed', 1],
])('a home with the mode %o: %s', async (mode, state, code) => {
  await chmod(home, mode);
  expect(await doctor()).toMatchObject({ code, states: { home: state } });
});

test('settings that cannot be used have failed, and the other checks go on', async () => {
  await writeFile(join(home, 'settings.json'), '{"server.expose": "yes"}');
  expect(await doctor()).toMatchObject({ code: 1, states: { settings: 'failed', home: 'ok', 'web pages': 'warning' } });
});

test('pages that are named are no warning', async () => {
  await writeFile(join(home, 'settings.json'), '{"server.allowedOrigins": ["https://app.example"]}');
  const { states, text } = await doctor();
  expect(states).toMatchObject({ 'web pages': 'ok' });
  expect(text).toContain('https://app.example');
});

test('the machine is looked at: Node, processor, engine, memory, disk, clock', async () => {
  const { states, text } = await doctor();
  expect(states).toMatchObject({ node: 'ok', engine: 'ok', clock: 'ok', secrets: 'ok' });
  expect(Object.keys(states)).toEqual(expect.arrayContaining(['processor', 'memory', 'disk']));
  expect(text).toContain(process.versions.node);
  expect(text).toMatch(/installed: [\w-]+-(x64|arm64)/);
});

test('a clock that is behind what was written has failed', async () => {
  const tomorrow = new Date(Date.now() + 86_400_000);
  await writeFile(join(home, 'state.db'), '');
  await utimes(join(home, 'state.db'), tomorrow, tomorrow);
  expect(await doctor()).toMatchObject({ code: 1, states: { clock: 'failed' } });
});

test('where the secrets are is said, and that nobody reaches them', async () => {
  const store = { SVC_IDENTITY_STORE: 'keyring', DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent' };
  expect((await doctor({ SVC_IDENTITY_STORE: 'vault' })).text).toContain('vault file');
  expect(await doctor(store)).toMatchObject({ code: 1, states: { secrets: 'failed' } });
});
