/** `postern logs`, as a user runs it: beside a running server, after one, and where there never was one. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LoggedRequest } from '../../gateway/request-log/request-log-reader.ts';
import { post, readLog, user } from '../support/request-log.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

let folder: string;
let home: string;
let server: TestServer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-logs-'));
  home = join(folder, 'home');
  await mkdir(home);
  server = await startServer({ home });
  await (await post(server, '/v1/chat/completions', user('Hello'))).text();
  await (await fetch(`${server.url}/v1/models`)).text();
  await (await fetch(`${server.url}/nope?key=canary`)).text();
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const cli = (...args: string[]) => runCli(['logs', ...args], { SVC_HOME: home, TZ: 'UTC' });
const lines = (text: string) => text.split('\n').filter((line) => line !== '');
const rows = (text: string) => lines(text).map((line) => JSON.parse(line) as LoggedRequest);

test('one aligned line for each request, the newest last', async () => {
  const { code, stdout, stderr } = await cli();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [chat, models, nope] = lines(stdout);
  expect(chat).toMatch(
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}200 {2}POST +[\d.]+ m?s {2}\/v1\/chat\/completions {6}foundation {2}\d+ in {2}\d+ out {2}[\d.]+ tok\/s {2}stop$/,
  );
  expect(models).toMatch(/200 {2}GET +[\d.]+ ms {2}\/v1\/models$/);
  expect(nope).toMatch(/404 {2}GET +[\d.]+ ms {2}\/nope +not_found$/);
  expect(new Set([chat, models, nope].map((line) => line!.indexOf('  /')))).toHaveLength(1);
});

test('--json says the same as GET /admin/requests, the other way round', async () => {
  const { stdout } = await cli('--json', '--limit', '2');
  const { requests } = await readLog(server, 'limit=2&search=/');
  expect(rows(stdout)).toEqual(requests.toReversed());
});

test.each([
  [['--method', 'post'], ['/v1/chat/completions']],
  [['--search', 'FOUNDATION'], ['/v1/chat/completions']],
  [['--errors'], ['/nope']],
  [['--source', 'sealed'], []],
  [
    ['--since', '1h', '--search', '/v1/'],
    ['/v1/chat/completions', '/v1/models'],
  ],
  [['--since', '2100-01-01T00:00:00Z'], []],
])('%j', async (args, paths) => {
  const { code, stdout } = await cli('--json', ...args);
  expect(code).toBe(0);
  expect(rows(stdout).map(({ path }) => path)).toEqual(paths);
});

test('--stats', async () => {
  const { stats } = await readLog(server, 'search=/nope');
  expect(JSON.parse((await cli('--stats', '--json', '--search', '/nope')).stdout)).toEqual(stats);
  expect((await cli('--stats', '--search', '/nope')).stdout).toMatch(
    /^requests +1\nsuccess rate +0\.0 %\naverage time +[\d.]+ ms\nerrors +1\ninferences +0\ntokens\/second +-\n$/,
  );
});

test.each([
  [['--limit', '0'], '--limit: '],
  [['--limit', 'x'], '--limit: '],
  [['--method', 'FETCH'], '--method: '],
  [['--source', 'ui'], '--source: '],
  [['--since', 'yesterday'], '--since: '],
  [['--follow', '--stats'], 'not both'],
  [['extra'], 'extra'],
  [['--frobnicate'], '--frobnicate'],
])('%j is misuse, and said in a line', async (args, words) => {
  expect(await cli(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(words) });
});

describe('--follow', () => {
  async function follow<Result>(
    args: readonly string[],
    use: (seen: readonly string[], child: ChildProcess) => Promise<Result>,
  ): Promise<number | null> {
    const child = spawn(process.execPath, [cliPath, 'logs', '--follow', ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, SVC_HOME: home },
    });
    const ended = once(child, 'exit') as Promise<[number | null]>;
    const seen: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => seen.push(line));
    try {
      await use(seen, child);
    } finally {
      child.kill('SIGINT');
    }
    return (await ended)[0];
  }
  const paths = (seen: readonly string[]) => seen.map((line) => (JSON.parse(line) as LoggedRequest).path);

  test('new requests come as they are answered, each once, until Ctrl-C', async () => {
    const code = await follow(['--json', '--limit', '1'], async (seen) => {
      await until(() => seen.length === 1);
      for (let n = 0; n < 20; n += 1) await (await fetch(`${server.url}/followed/${n}`)).text();
      await until(() => seen.some((line) => line.includes('/followed/19"')));
      expect(paths(seen).slice(1)).toEqual(Array.from({ length: 20 }, (_, n) => `/followed/${n}`));
    });
    expect(code).toBe(0);
  });

  test('only those that the filters let through', async () => {
    await follow(['--json', '--method', 'DELETE', '--search', 'gone'], async (seen) => {
      for (const method of ['GET', 'DELETE']) await (await fetch(`${server.url}/gone`, { method })).text();
      await until(() => seen.length > 0);
      expect(seen.map((line) => (JSON.parse(line) as LoggedRequest).method)).toEqual(['DELETE']);
    });
  });

  test('a reader that has seen enough ends it, without a word', async () => {
    const code = await follow(['--json', '--limit', '1'], async (seen, child) => {
      await until(() => seen.length === 1);
      child.stdout!.destroy();
      await until(async () => {
        await (await fetch(`${server.url}/more`)).text();
        return child.exitCode !== null;
      });
    });
    expect(code).toBe(0);
  });
});

test('the log is still there when no server runs, and reading it leaves nothing behind', async () => {
  const old = join(folder, 'old');
  const own = await startServer({ home: old });
  await (await fetch(`${own.url}/v1/models`)).text();
  await own.stop();
  const before = await readdir(old);
  const { stdout } = await runCli(['logs', '--json'], { SVC_HOME: old });
  expect(rows(stdout).map(({ path }) => path)).toEqual(['/v1/models']);
  expect(await readdir(old)).toEqual(before);
});

describe('where there is no log', () => {
  test('no home is made', async () => {
    const none = join(folder, 'none');
    const answer = await runCli(['logs'], { SVC_HOME: none });
    expect(answer).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('postern serve') });
    expect(lines(answer.stderr)).toHaveLength(1);
    await expect(stat(none)).rejects.toThrow();
  });

  test('a file that is no database is said to be none', async () => {
    const odd = join(folder, 'odd');
    await mkdir(odd, { mode: 0o700 });
    await writeFile(join(odd, 'state.db'), 'x'.repeat(5000), { mode: 0o600 });
    const answer = await runCli(['logs'], { SVC_HOME: odd });
    expect(answer).toMatchObject({ code: 1, stderr: expect.stringContaining('state.db is damaged (SQLITE_NOTADB)') });
    expect(lines(answer.stderr)).toHaveLength(1);
  });
});
