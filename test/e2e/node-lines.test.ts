/** The service on each supported line of Node, and the front door on a Node that is too old; all of them real. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { beginOn } from '../support/on-machine.ts';
import { fetchedNode } from '../support/node-lines.ts';
import { has } from '../support/requirements.ts';
import { cliPath, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const question = { role: 'user', content: 'What is the capital of France?' };
const chat = { method: 'POST', body: JSON.stringify({ model: 'foundation', temperature: 0, messages: [question] }) };

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-node-lines-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function start(node: string, options: Parameters<typeof startServer>[0]): Promise<TestServer> {
  const server = await startServer({ node, ...options });
  onTestFinished(() => server.stop());
  return server;
}

async function answerOf({ url }: TestServer): Promise<string> {
  const response = await fetch(`${url}/v1/chat/completions`, chat);
  return JSON.stringify(await response.json());
}

describe.each(['22.14.0', '22.23.3', '24.21.0', '26.10.0'] as const)('Node %s', (version) => {
  const node = fetchedNode(version);

  test.runIf(has(node))('serves, makes keys, pairs, answers sealed calls and stops', async () => {
    const [home, laptopHome] = [scratch(), scratch()];
    const run = async (args: readonly string[], at: string, input = '') => {
      const result = await beginOn({ within: [] }, [cliPath, ...args], { home: at, input, node: node.path }).ended;
      expect({ args, ...result }).toMatchObject({ code: 0 });
      return result;
    };
    const server = await start(node.path, { home });
    expect(await answerOf(server)).toContain('Paris');
    expect((await run(['keys', 'create', '--label', 'other'], home)).stdout).toMatch(/^\S+\n$/);
    const asking = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
    const { code } = (await (await fetch(`${server.url}/admin/invites`, asking)).json()) as { code: string };
    await run(['pair', '-'], laptopHome, code);
    const laptop = await start(node.path, { home: laptopHome, program: [cliPath, 'connect'] });
    expect(await answerOf(laptop)).toContain('Paris');
    await run(['stop'], home);
    await until(() => server.process.exitCode !== null);
    expect(server.process.exitCode).toBe(0);
  });

  test.runIf(has(node))('lives through a garbage collector that never rests', async () => {
    const preload = join(ROOT, 'test', 'support', 'collect-garbage.mjs');
    const server = await start(node.path, { program: ['--expose-gc', '--import', preload, cliPath, 'serve'] });
    let answered = 0;
    while (!server.log().includes('all statements collected')) {
      expect(server.process.exitCode ?? server.process.signalCode).toBeNull();
      expect(await answerOf(server)).toContain('Paris');
      answered += 1;
    }
    expect(answered).toBeGreaterThan(0);
    expect(await answerOf(server)).toContain('Paris');
  });
});

describe('the front door on Node 20.20.2', () => {
  const old = fetchedNode('20.20.2');

  test.runIf(has(old))('fetches the pinned Node through npm, and runs under it', () => {
    const folder = scratch();
    const project = join(folder, 'project');
    mkdirSync(join(folder, 'bin'));
    for (const part of ['scripts', 'package.json', 'postern'])
      cpSync(join(ROOT, part), join(project, part), { recursive: true });
    writeFileSync(join(project, 'scripts', 'postern.mjs'), 'console.log(process.version, process.execPath);');
    // Nothing else is on the path: no compiler, no Python.
    for (const tool of ['sh', 'sed', 'dirname', 'uname', 'cksum', 'readlink', 'npm'])
      symlinkSync(spawnSync('which', [tool], { encoding: 'utf8' }).stdout.trim(), join(folder, 'bin', tool));
    const env = { ...process.env, PATH: [old.bin, join(folder, 'bin')].join(delimiter), HOME: folder };
    const open = () => spawnSync(join(project, 'postern'), { cwd: folder, env, encoding: 'utf8' });
    const pinned = /^v24\.21\.0 .*project\/\.node\/[^/]+\/bin\/node\n$/;
    const [first, second] = [open(), open()];
    expect(first).toMatchObject({ status: 0, stdout: expect.stringMatching(pinned) });
    expect(first.stderr).toMatch(
      /^Postern needs Node 22\.14 or newer; this is 20\.20\.2\. Fetching Node 24\.21\.0 .*\n$/,
    );
    expect(second).toMatchObject({ status: 0, stdout: expect.stringMatching(pinned), stderr: '' });
    expect(readdirSync(join(project, '.node'))).toHaveLength(1);
  });
});
