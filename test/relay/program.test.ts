/** The relay as an operator runs it: its flags, its files, and that it needs nothing of the rest. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import { makeRelayKey, rawPeer, register } from '../support/relay-here.ts';
import { startRelayProcess } from '../support/relay-process.ts';
import { until } from '../support/wait.ts';

const root = new URL('../../', import.meta.url).pathname;
const relayMain = join(root, 'dist/relay/main.js');

function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

test.each([
  ['nothing', []],
  ['a port alone', ['--listen', '8443']],
  ['every address without a name', ['--listen', '0.0.0.0:0']],
  ['an origin with a path', ['--listen', '127.0.0.1:0', '--origin', 'wss://relay.example/']],
  [
    'an origin with the port that goes without saying',
    ['--listen', '127.0.0.1:0', '--origin', 'wss://relay.example:443'],
  ],
  ['a limit that there is not', ['--listen', '127.0.0.1:0', '--limit', 'what=1']],
  ['a certificate without its key', ['--listen', '127.0.0.1:0', '--tls-cert', 'a.pem']],
  ['a flag that there is not', ['--what']],
])('%s is a misuse, by either name', (_name, args) => {
  for (const program of [[relayMain], [join(root, 'dist/postern/bin.js'), 'relay']]) {
    const { status, stdout, stderr } = run(...program, ...args);
    expect(status).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain('--help');
  }
});

test('--help has an example; a file that is not there is said so', () => {
  expect(run(relayMain, '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('Example:') });
  const { status, stderr } = run(relayMain, '--listen', '127.0.0.1:0', '--admit', '/nowhere/admitted.txt');
  expect(status).toBe(1);
  expect(stderr).toContain('/nowhere/admitted.txt');
});

test('the list of --admit is read again on SIGHUP, and a bad one changes nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-relay-'));
  const list = join(folder, 'admitted.txt');
  const key = makeRelayKey();
  writeFileSync(list, '# nobody yet\n');
  const relay = await startRelayProcess(0, ['--admit', list]);
  const tries = async (): Promise<number | undefined> => {
    const peer = await rawPeer(relay.origin);
    await register(peer, { key, epoch: Date.now(), origin: relay.origin });
    const frame = await until(() => peer.frames.find(({ type }) => type === 'error' || type === 'registered'));
    peer.close();
    return frame.type === 'error' ? frame.code : undefined;
  };
  expect(await tries()).toBe(RELAY_CODE.notAllowed);
  writeFileSync(list, `${Buffer.from(key.publicKey).toString('hex')}  # mine\n`);
  relay.process.kill('SIGHUP');
  await until(() => relay.log().includes('read the files again'));
  expect(await tries()).toBeUndefined();
  // It went by itself, and the log gives no other reason.
  await until(() => /^.*gateway gone \S+: disconnected, /m.test(relay.log()));
  writeFileSync(list, 'no key\n');
  relay.process.kill('SIGHUP');
  await until(() => relay.log().includes('nothing was changed'));
  expect(await tries()).toBeUndefined();
  await relay.end('SIGKILL');
  rmSync(folder, { recursive: true });
});

test('it runs with dist/relay, ws and prom-client, and nothing else of Postern', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-relay-'));
  mkdirSync(join(folder, 'dist'));
  mkdirSync(join(folder, 'node_modules/@opentelemetry'), { recursive: true });
  cpSync(join(root, 'dist/relay'), join(folder, 'dist/relay'), { recursive: true });
  cpSync(join(root, 'relay/deploy/package.json'), join(folder, 'package.json'));
  for (const name of ['ws', 'prom-client', 'tdigest', 'bintrees', '@opentelemetry/api'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  expect(run('--preserve-symlinks', join(folder, 'dist/relay/main.js'), '--help').status).toBe(0);
  rmSync(folder, { recursive: true });
});

test('the joining side is bundled for a browser: it needs no Node', async () => {
  const { outputFiles } = await build({
    entryPoints: [join(root, 'relay/wire/join-relay.ts')],
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'esm',
    minify: true,
  });
  expect(outputFiles[0]!.text).not.toMatch(/\b(Buffer|process|require)\b/u);
});
