/** What `postern serve` says to whoever starts it, and while it runs; and how it starts with the machine. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { atTerminal } from '../support/at-terminal.ts';
import { has, systemdAnalyze, terminals } from '../support/requirements.ts';
import { cliPath, runCli } from '../support/server.ts';
import { until } from '../support/wait.ts';

const root = new URL('../../', import.meta.url).pathname;

let home: string;
let children: ChildProcess[];
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-words-'));
  children = [];
});
afterEach(async () => {
  for (const child of children) {
    if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit');
  }
  await rm(home, { recursive: true, force: true });
});

const environment = (more: Readonly<Record<string, string>> = {}) => ({
  SVC_HOME: home,
  HOME: home,
  SVC_IDENTITY_STORE: 'vault',
  SVC_MODELS_DIR: join(home, 'models'),
  ...more,
});

function serve(program: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const child = spawn(program[0]!, [...program.slice(1), 'serve', '--port', '0'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment(more) },
  });
  children.push(child);
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  return { out: () => out, err: () => err };
}

const here = [process.execPath, cliPath];

test('it shows a request that can be tried as it stands, and names the program as it was called', async () => {
  const { err } = serve(['./postern']);
  const line = await until(() => /^ {2}(curl .*)$/m.exec(err())?.[1]);
  expect(err()).toContain('Try it: ./postern chat, or\n');
  const { stdout } = spawnSync('bash', ['-c', `${line} -s`], { encoding: 'utf8' });
  expect(JSON.parse(stdout)).toMatchObject({ object: 'chat.completion', model: 'foundation' });
});

test('a models folder that is missing is named with what makes it', async () => {
  const without = serve(here);
  await until(() => without.err().includes('Try it: postern chat'));
  expect(without.err()).toContain(`${home}/models does not exist yet: "postern models pull" makes it, or mkdir -p.`);
});

test('one that is there is not', async () => {
  await mkdir(join(home, 'models'));
  const withFolder = serve(here);
  await until(() => withFolder.err().includes('Try it: postern chat'));
  expect(withFolder.err()).not.toContain('does not exist');
});

async function urlOf(words: () => string): Promise<string> {
  return until(() => /serves on (http:\/\/\S+)/.exec(words())?.[1]);
}

test('--verbose writes requests into a pipe as they are answered, as JSON, and nothing without it', async () => {
  const verbose = serve([...here], {});
  const url = await urlOf(verbose.err);
  await fetch(`${url}/v1/models`);
  await until(async () => (await runCli(['logs'], environment())).stdout.includes('/v1/models'));
  expect(verbose.out()).toBe('');
  children.at(-1)!.kill('SIGTERM');
  await once(children.at(-1)!, 'exit');

  const child = spawn(process.execPath, [cliPath, 'serve', '--port', '0', '--verbose'], {
    env: { ...process.env, ...environment() },
  });
  children.push(child);
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  await fetch(`${await urlOf(() => err)}/nowhere`);
  const line = await until(() => out.split('\n').length > 1 && out.split('\n')[0]);
  expect(JSON.parse(line)).toMatchObject({ path: '/nowhere', status: 404, error_code: 'not_found' });
});

describe.runIf(has(terminals))('on a screen', () => {
  test('--verbose writes lines for people, under heads', async () => {
    const terminal = atTerminal(['serve', '--port', '0', '--verbose'], { environment: environment(), columns: 200 });
    const url = await urlOf(() => terminal.screen());
    await fetch(`${url}/nowhere`);
    await terminal.sees(/TIME +HTTP METHOD[^]*404 {2}GET .*\/nowhere/);
    terminal.type('\u0003');
    expect(await terminal.ended()).toBe(0);
  });
});

describe.runIf(has(systemdAnalyze))('with the machine', () => {
  test('the unit of the docs is one that systemd takes', async () => {
    const docs = await readFile(join(root, 'docs/operations.md'), 'utf8');
    const unit = /```ini\n([^]*?)```/.exec(docs)?.[1] ?? '';
    const verify = async (text: string) => {
      const path = join(home, 'postern.service');
      await writeFile(path, text);
      const { stderr, status } = spawnSync('systemd-analyze', ['--user', 'verify', path], {
        encoding: 'utf8',
        env: { ...process.env, XDG_RUNTIME_DIR: home },
      });
      return { ours: stderr.split('\n').filter((line) => line.includes(path)), status };
    };
    const installed = unit.replace('%h/postern/postern', join(root, 'postern'));
    expect(installed).not.toBe(unit);
    expect(await verify(installed)).toEqual({ ours: [], status: 0 });
    expect((await verify(installed.replace('Restart=on-failure', 'Restart=sometimes'))).ours).toHaveLength(1);
  });
});
