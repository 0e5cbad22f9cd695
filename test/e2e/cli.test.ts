/** The command line as a user runs it: start, find, stop, settings; and what a crash leaves behind. */
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

let home: string;
const servers: TestServer[] = [];

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-cli-'));
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await rm(home, { recursive: true, force: true });
});

async function start(options: Parameters<typeof startServer>[0] = {}): Promise<TestServer> {
  const server = await startServer({ home, ...options });
  servers.push(server);
  return server;
}
const cli = (...args: string[]) => runCli(args, { SVC_HOME: home });
const exited = async ({ process }: TestServer) =>
  process.exitCode === null ? ((await once(process, 'exit')) as [number])[0] : process.exitCode;
const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

describe('serve, status, stop', () => {
  test('a server is found, asked and stopped', async () => {
    expect(await cli('status')).toMatchObject({ code: 1, stdout: 'stopped\n' });
    expect(JSON.parse((await cli('status', '--json')).stdout)).toEqual({ running: false });
    const server = await start();
    const status = await cli('status');
    expect(status).toMatchObject({ code: 0, stdout: expect.stringContaining(server.url) });
    expect(JSON.parse((await cli('status', '--json')).stdout)).toMatchObject({
      running: true,
      url: server.url,
      pid: server.process.pid,
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      resident_models: [],
    });
    expect(await cli('stop')).toMatchObject({ code: 0, stderr: 'Stopped.\n' });
    expect(await exited(server)).toBe(0);
    expect(await cli('status')).toMatchObject({ code: 1 });
    expect(await cli('stop')).toMatchObject({ code: 0, stderr: expect.stringContaining('not running') });
  });

  test('the front door builds nothing twice, and passes its arguments on', async () => {
    const frontDoor = new URL('../../scripts/start.mjs', import.meta.url).pathname;
    const server = await start({ program: [frontDoor] });
    expect((await fetch(`${server.url}/`)).status).toBe(200);
    expect(server.log()).not.toMatch(/Installing|Building/);
  });

  test('what it writes is for its owner alone', async () => {
    await start();
    expect(await modeOf(join(home, 'run.json'))).toBe('600');
    expect(await modeOf(join(home, 'run.lock'))).toBe('600');
  });

  test('one server per home', async () => {
    const server = await start();
    const second = await cli('serve', '--port', '0');
    expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining(server.url) });
    expect(second.stderr).toContain('postern stop');
  });

  test('of many that start at once, one serves', async () => {
    const attempts = await Promise.allSettled(Array.from({ length: 4 }, () => start()));
    expect(attempts.filter((attempt) => attempt.status === 'fulfilled')).toHaveLength(1);
    expect(await cli('status')).toMatchObject({ code: 0 });
  });

  test('kill -9 leaves nothing that stands in the way of the next start', async () => {
    const server = await start();
    server.process.kill('SIGKILL');
    await exited(server).catch(() => undefined);
    expect((await readFile(join(home, 'run.json'), 'utf8')).length).toBeGreaterThan(0);
    expect(await cli('status')).toMatchObject({ code: 1, stdout: 'stopped\n' });
    await start();
    expect(await cli('status')).toMatchObject({ code: 0 });
  });

  test('another program on the remembered port is not taken for the server', async () => {
    const stranger = createServer((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'));
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
    const { port } = stranger.address() as { port: number };
    const run = { pid: process.pid, host: '127.0.0.1', port, token: 'x', startedAtMs: 0 };
    await writeFile(join(home, 'run.json'), JSON.stringify(run));
    expect(await cli('status')).toMatchObject({ code: 1, stdout: 'stopped\n' });
    stranger.close();
  });

  test('a port in use is said in one line, with the way out', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    const answer = await cli('serve', '--port', String(port));
    expect(answer).toMatchObject({ code: 1, stderr: expect.stringMatching(/port \d+ is in use.*--port/) });
    expect(answer.stderr.trim().split('\n')).toHaveLength(1);
    taken.close();
  });

  test('both loopback addresses answer', async () => {
    const server = await start();
    for (const host of ['127.0.0.1', '[::1]', 'localhost']) {
      expect((await fetch(`http://${host}:${server.port}/`)).status).toBe(200);
    }
  });
});

describe('a clean end', () => {
  const endless = {
    model: 'foundation',
    messages: [{ role: 'user', content: 'Hello' }],
    stream: true,
    response_format: {
      type: 'json_schema',
      json_schema: {
        name: 'long',
        schema: { type: 'array', items: { type: 'string', minLength: 50 }, minItems: 1000 },
      },
    },
  };
  const begin = (server: TestServer, body: object) =>
    fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(body) });

  test('a stream that can finish, finishes', async () => {
    const server = await start();
    const response = await begin(server, {
      ...endless,
      response_format: undefined,
      messages: [{ role: 'user', content: 'Tell me a story about Ada.' }],
    });
    server.process.kill('SIGTERM');
    expect(await response.text()).toMatch(/"finish_reason":"stop"[^]*\[DONE\]/);
    expect(await exited(server)).toBe(0);
  });

  test('a stream that cannot, is told why by the second signal', async () => {
    const server = await start();
    const response = await begin(server, endless);
    server.process.kill('SIGTERM');
    await until(() => server.log().includes('Stopping'));
    server.process.kill('SIGTERM');
    expect(await response.text()).toMatch(/"message":"The service is shutting down\."[^\n]*\n\n$/);
    expect(await exited(server)).toBe(0);
  });

  test('a reader that stopped reading is not waited for', async () => {
    const server = await start();
    const socket = connect(server.port, '127.0.0.1');
    const body = JSON.stringify(endless);
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    socket.pause();
    await until(
      async () => ((await (await fetch(`${server.url}/health`)).json()) as { chat_active: boolean }).chat_active,
    );
    server.process.kill('SIGTERM');
    await until(() => server.log().includes('Stopping'));
    server.process.kill('SIGTERM');
    expect(await exited(server)).toBe(0);
    socket.destroy();
  });

  test('a connection that never asked anything is not waited for', { timeout: 8000 }, async () => {
    const server = await startServer();
    const socket = connect({ host: '127.0.0.1', port: server.port });
    await once(socket, 'connect');
    await until(async () => {
      const health = (await (await fetch(`${server.url}/health`)).json()) as { open_connections: number };
      return health.open_connections >= 2;
    });
    await server.stop();
    socket.destroy();
  });

  test('no runner outlives its server, not even after kill -9', async () => {
    const server = await start();
    await (await begin(server, { ...endless, response_format: undefined })).text();
    const { pid } = server.process;
    const runner = Number((await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim());
    server.process.kill('SIGKILL');
    await until(() =>
      stat(`/proc/${runner}`).then(
        () => false,
        () => true,
      ),
    );
  });
});

describe('settings', () => {
  test('flag, then environment, then file, then default', async () => {
    const sourceOf = async (environment: Record<string, string>) => {
      const { stdout } = await runCli(['settings', 'list', '--json'], { SVC_HOME: home, ...environment });
      return (JSON.parse(stdout) as { name: string; value: unknown; source: string }[]).find(
        (row) => row.name === 'server.port',
      );
    };
    expect(await sourceOf({})).toMatchObject({ value: 1337, source: 'default' });
    expect(await cli('settings', 'set', 'server.port', '4001')).toMatchObject({ code: 0 });
    expect(await sourceOf({})).toMatchObject({ value: 4001, source: 'file' });
    expect(await sourceOf({ SVC_PORT: '4002' })).toMatchObject({ value: 4002, source: 'environment' });
    const server = await start({ environment: { SVC_PORT: '1' } });
    expect(server.port).not.toBe(1);
    expect(await modeOf(join(home, 'settings.json'))).toBe('600');
    expect(await cli('settings', 'set', 'server.port', '4003')).toMatchObject({
      stderr: expect.stringContaining('starts next'),
    });
    expect(await cli('settings', 'unset', 'server.port')).toMatchObject({ code: 0 });
    expect((await cli('settings', 'get', 'server.port')).stdout).toBe('1337\n');
  });

  test.each([
    [['set', 'server.prot', '1'], 2, 'there is no setting "server.prot"'],
    [['set', 'server.port', 'many'], 1, 'server.port'],
    [['set', 'server.port', '70000'], 1, 'server.port'],
    [['set', 'inference.keepLoadedMinutes', '7'], 1, 'expected 0, 5, 15, 30, 60 or null'],
    [['set', 'inference.evictionPolicy', 'none'], 1, 'expected strict or flexible'],
    [['set', 'inference.concurrentSessions', 'many'], 1, 'expected a whole number or null'],
    [['set', 'server.expose', 'perhaps'], 1, 'expected true or false'],
    [['set', 'server.hostnames', 'Bad Host'], 1, 'server.hostnames'],
    [['set', 'server.allowedOrigins', 'https://app.example/path'], 1, 'server.allowedOrigins'],
    [['set', 'server.port'], 2, 'to what?'],
    [['get', 'nope'], 2, 'nope'],
    [['frobnicate'], 2, 'say "list"'],
    [['list', '--frobnicate'], 2, 'there is no option --frobnicate.'],
  ])('%j ends with %i and changes nothing', async (args, code, words) => {
    const answer = await cli('settings', ...args);
    expect(answer).toMatchObject({ code, stderr: expect.stringContaining(words) });
    await expect(stat(join(home, 'settings.json'))).rejects.toThrow();
  });

  test.each(['settings', 'keys', 'models', 'audit'])('a bare "%s" lists', async (noun) => {
    const [bare, listed] = [await runCli([noun], { SVC_HOME: home }), await runCli([noun, 'list'], { SVC_HOME: home })];
    expect(bare).toEqual(listed);
    expect(bare.code).toBe(0);
  });

  test('a model that is to be kept no longer than its call, is not', async () => {
    expect(await cli('settings', 'set', 'inference.keepLoadedMinutes', '7')).toMatchObject({ code: 1 });
    expect(await cli('settings', 'set', 'inference.keepLoadedMinutes', '0')).toMatchObject({ code: 0 });
    const server = await start();
    const body = JSON.stringify({ model: 'foundation', messages: [{ role: 'user', content: 'Hello' }] });
    for (let turn = 0; turn < 2; turn += 1) {
      expect((await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body })).status).toBe(200);
      await until(
        async () => ((await (await fetch(`${server.url}/health`)).json()) as { loaded: string[] }).loaded.length === 0,
      );
    }
    expect(server.log()).not.toContain('unexpectedly');
  });

  test('lists by commas, and booleans', async () => {
    await cli('settings', 'set', 'server.hostnames', 'a.example, b.example');
    await cli('settings', 'set', 'server.expose', 'true');
    expect(JSON.parse(await readFile(join(home, 'settings.json'), 'utf8'))).toEqual({
      'server.hostnames': ['a.example', 'b.example'],
      'server.expose': true,
    });
  });

  test.each([
    ['{"server.prot": 1}', 'server.prot'],
    ['{"server.port": "x"}', 'server.port'],
    ['{', 'not a JSON object'],
    ['[]', 'not a JSON object'],
  ])('a file with %s stops the start and says where', async (content, words) => {
    await writeFile(join(home, 'settings.json'), content);
    expect(await cli('serve', '--port', '0')).toMatchObject({ code: 1, stderr: expect.stringContaining(words) });
  });
});

describe('help and mistakes', () => {
  test('--help, --version, and help with an example for every command', async () => {
    const help = await cli('--help');
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage: postern') });
    expect((await cli('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    for (const [, name] of help.stdout.matchAll(/^ {2}(\w+) {2,}\w/gm)) {
      expect(await cli(name!, '--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('Example:') });
    }
  });

  test.each([
    [['frobnicate'], 'no command "frobnicate"'],
    [['serve', '--port', 'x'], 'not a port number'],
    [['serve', '--port', '99999'], 'not a port number'],
    [['serve', 'extra'], 'extra'],
    [['serve', '--frobnicate'], '--frobnicate'],
  ])('%j is explained, and nothing starts', async (args, words) => {
    const answer = await cli(...args);
    expect(answer.code).toBeGreaterThan(0);
    expect(answer.stderr).toContain(words);
    expect(answer.stderr).not.toContain('    at ');
  });
});

test('a folder that the system refuses is said in a line', async () => {
  await writeFile(join(home, 'file'), '');
  const refused = await runCli(['keys', 'create'], { SVC_HOME: join(home, 'file') });
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(/^postern: \S+\/file is not a folder\. .*\n$/);
});
