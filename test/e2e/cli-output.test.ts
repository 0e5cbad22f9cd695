/** What the command line is asked wrongly, what it can't print, and what its own questions leave behind. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseMetrics } from '../support/prometheus.ts';
import { readLog } from '../support/request-log.ts';
import { cliPath, runCli, startServer } from '../support/server.ts';

const relayPath = new URL('../../dist/relay/main.js', import.meta.url).pathname;

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-cli-output-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const cli = (...args: string[]) => runCli(args, { SVC_HOME: home });

test.each([
  ['serve --port 99999', '--port: "99999" is not a port number (0 to 65535)'],
  ['serve --port 99999999999999999999', 'is not a port number'],
  ['serve --port 1e3', 'is not a port number'],
  ['serve --port=-1', 'is not a port number'],
  ['serve --relay nowhere', 'relay.urls'],
  ['connect --port 65536', 'is not a port number'],
  ['logs --limit 99999999999', 'from 1 to 1000'],
  ['logs --since 99999999999999999d', '--since: expected a time'],
  ['audit list --limit 0', '--limit'],
  ['keys create --expires 999999999d', '--expires'],
  ['keys create --agent 99999999999', '--agent'],
  ['invite --expires 9999d', 'from 1m to 1h'],
  ['relay --listen 127.0.0.1:99999', '--listen'],
  ['relay --listen 127.0.0.1:0 --limit drainMs=99999999999999999999', 'drainMs'],
])('"%s" is misuse, in plain words', async (line, words) => {
  const { code, stdout, stderr } = await cli(...line.split(' '));
  expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(words) });
  expect(stderr).toMatch(/^postern: .*\nSee "postern \w+ --help"\.\n$/);
  expect(stderr).not.toMatch(/Too big|Invalid input|^\s+at /m);
});

/** @param path of what one of its two streams is */
async function runWith(program: readonly string[], stream: 'stdout' | 'stderr', path: string) {
  const file = await open(path, 'w');
  const stdio = (name: string) => (name === stream ? file.fd : 'pipe');
  const env = { ...process.env, SVC_HOME: home, SVC_IDENTITY_STORE: 'vault' };
  const child = spawn(process.execPath, program, { stdio: ['ignore', stdio('stdout'), stdio('stderr')], env });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  child.stdout?.resume();
  const [code] = (await once(child, 'close')) as [number | null];
  await file.close();
  return { code, said };
}

describe('where nothing can be written', () => {
  test.each([
    ['--version'],
    ['--help'],
    ['settings list'],
    ['settings list --json'],
    ['keys create'],
    ['serve --port 0 --json'],
  ])('"postern %s" says that its answer is lost, and fails', async (line) => {
    const { code, said } = await runWith([cliPath, ...line.split(' ')], 'stdout', '/dev/full');
    expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining("can't be written (ENOSPC)") });
    expect(said).not.toMatch(/^\s+at /m);
  });

  test('a relay by itself says so as well', async () => {
    const { code, said } = await runWith([relayPath, '--listen', '127.0.0.1:0'], 'stdout', '/dev/full');
    expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining("can't be written (ENOSPC)") });
    expect(said).not.toMatch(/^\s+at /m);
  });

  test('words that are lost keep no command from its answer', async () => {
    expect(await runWith([cliPath, 'keys', 'create'], 'stderr', '/dev/full')).toMatchObject({ code: 0 });
  });
});

test('what asks how things are leaves no row in the log, and is counted; what is refused leaves one', async () => {
  const server = await startServer({ home });
  try {
    for (const command of [['status'], ['approvals', '--json'], ['settings', 'set', 'server.port', '0']])
      expect(await cli(...command)).toMatchObject({ code: 0 });
    for (const path of ['/health', '/admin/status', '/metrics'])
      expect((await fetch(server.url + path)).status).toBe(200);
    const forwarded = { 'x-forwarded-for': '192.0.2.1' };
    expect((await fetch(`${server.url}/health`, { headers: forwarded })).status).toBe(200);
    expect((await fetch(`${server.url}/admin/status`, { headers: forwarded })).status).toBe(403);
    const { requests } = await readLog(server);
    const rows = requests.map(({ status, path, caller }) => `${status} ${path} ${caller}`).toSorted();
    // The command line's own calls of the administration are none of what its owner looks for.
    expect(rows).toEqual(['200 /health anonymous', '403 /admin/status anonymous']);
    const counted = parseMetrics(await (await fetch(`${server.url}/metrics`)).text());
    expect(JSON.stringify([...counted])).toContain('/admin/status');
  } finally {
    await server.stop();
  }
});
