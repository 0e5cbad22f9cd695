/** The commands of a second laptop, as far as they go without a gateway. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { keepDevice, newInvite } from '../support/paired-home.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

let home: string;
const running: TestServer[] = [];
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-pair-'));
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()));
  await rm(home, { recursive: true, force: true });
});

const cli = (args: readonly string[], input = '') => runCli(args, { SVC_HOME: home }, input);
const pair = (invite: string, ...more: string[]) => cli(['pair', '-', ...more], invite);
const readJson = async <Shape>(name: string) => JSON.parse(await readFile(join(home, name), 'utf8')) as Shape;
const paired = () =>
  readJson<{ gateways: { gatewayName: string }[]; pending: { entry: string; expiresAt: string }[] }>('paired.json');
const entries = async () => (await readJson<{ entries: Record<string, string> }>('vault.json')).entries;

async function connectHere(...args: string[]): Promise<TestServer> {
  const server = await startServer({ home, program: [cliPath, 'connect'], args });
  running.push(server);
  return server;
}

describe('an invite', () => {
  test('on the command line is refused, and not repeated', async () => {
    const invite = newInvite();
    for (const args of [['pair', invite], ['pair', '-', invite], ['pair']]) {
      const { code, stdout, stderr } = await cli(args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain('standard input');
      expect(stderr).not.toContain(invite.slice(0, 20));
    }
  });

  test.each([
    ['nothing', '', 'not an invite'],
    ['another text', 'hello', 'not an invite'],
    ['half of one', newInvite().slice(0, 60), 'not an invite'],
    ['one that is over', newInvite({ expiresAtMinute: 29_000_000 }), 'over since 2025'],
    ['one without an address', newInvite({ urls: [] }), '--expose'],
  ])('that is %s is refused, and nothing is made', async (_, invite, words) => {
    expect(await pair(invite)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(words) });
    await expect(stat(join(home, 'paired.json'))).rejects.toThrow('ENOENT');
    await expect(stat(join(home, 'vault.json'))).rejects.toThrow('ENOENT');
  });

  test('is shown before anybody is asked: whose it is, where to, until when', async () => {
    const { code, stderr } = await pair(newInvite({ needsApproval: true }));
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^Gateway {4}([0-9a-f]{4} ){7}[0-9a-f]{4}\nAddresses {2}http:\/\/127\.0\.0\.1:1\nGood until .*\n/,
    );
    expect(stderr.indexOf('Secrets are in')).toBeLessThan(stderr.indexOf('The owner at home has to say yes'));
    expect(stderr).toContain('The gateway answers at none of its addresses');
  });

  test('in lower case, in lines and with blanks around is the same', async () => {
    const invite = newInvite();
    const { stderr } = await pair(`  ${invite.slice(0, 50).toLowerCase()}\n${invite.slice(50)}\n`);
    expect(stderr).toContain('answers at none of its addresses');
  });

  test('to a name that cannot be shown is not taken', async () => {
    expect(await pair(newInvite(), '--name', 'a\u202eb')).toMatchObject({ code: 2 });
  });
});

describe('a pairing that did not come to its end', () => {
  let silent: Server;
  const asked: string[] = [];
  beforeEach(async () => {
    asked.length = 0;
    silent = createServer((request) => void asked.push(request.url ?? '')).listen(0, '127.0.0.1');
    await once(silent, 'listening');
  });
  afterEach(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const inviteToSilence = () => newInvite({ urls: [`http://127.0.0.1:${(silent.address() as AddressInfo).port}`] });

  test.each(['SIGINT', 'SIGKILL'] as const)(
    'but in %s leaves nothing paired, and the key for another try',
    async (signal) => {
      const invite = inviteToSilence();
      const keys: string[] = [];
      for (const attempt of [1, 2]) {
        const child = spawn(process.execPath, [cliPath, 'pair', '-'], {
          stdio: ['pipe', 'ignore', 'pipe'],
          env: { ...process.env, SVC_HOME: home, SVC_IDENTITY_STORE: 'vault' },
        });
        let words = '';
        child.stderr.on('data', (chunk: Buffer) => (words += chunk.toString()));
        child.stdin.end(invite);
        await until(() => asked.length === attempt);
        child.kill(signal);
        const [code] = (await once(child, 'close')) as [number | null];
        expect(code).toBe(signal === 'SIGINT' ? 1 : null);
        if (signal === 'SIGINT') expect(words).toContain('Not paired.');
        expect(await cli(['gateways'])).toMatchObject({ code: 0, stdout: '' });
        keys.push(JSON.stringify(await entries()));
      }
      expect(asked).toEqual(['/pair-invite', '/pair-invite']);
      // The invite may have been redeemed with it: another key would be turned away.
      expect(keys[0]).toBe(keys[1]);
      expect(Object.keys(await entries())).toEqual([expect.stringMatching(/^pairing-[0-9a-f]{32}$/)]);
    },
  );

  test('leaves no key of an invite that is over by the next time', async () => {
    await pair(newInvite());
    const file = await paired();
    const [before] = file.pending;
    const over = { ...file, pending: [{ ...before, expiresAt: '2025-01-01T00:00:00.000Z' }] };
    await writeFile(join(home, 'paired.json'), JSON.stringify(over));
    await pair(newInvite());
    const after = (await paired()).pending;
    expect(after).toHaveLength(1);
    expect(Object.keys(await entries())).toEqual([after[0]?.entry]);
    expect(after[0]?.entry).not.toBe(before?.entry);
  });

  test('is for its owner alone to read', async () => {
    await pair(newInvite());
    for (const name of ['paired.json', 'vault.json', 'vault.key']) {
      expect(((await stat(join(home, name))).mode & 0o777).toString(8), name).toBe('600');
    }
  });

  test('takes nothing from a gateway in the same home, nor does that from it', async () => {
    const gateway = await startServer({ home });
    running.push(gateway);
    await until(() => gateway.log().includes('Secrets are'));
    const address = (await cli(['identity', 'show'])).stdout;
    await pair(newInvite());
    expect(Object.keys(await entries())).toEqual([
      'master',
      'gateway',
      'columns',
      'audit',
      (await paired()).pending[0]?.entry,
    ]);
    expect((await cli(['identity', 'show'])).stdout).toBe(address);
  });

  test('is one of many at a time, and each is written down', async () => {
    await Promise.all(Array.from({ length: 4 }, () => pair(newInvite())));
    const { pending } = await paired();
    expect(pending).toHaveLength(4);
    expect(Object.keys(await entries()).toSorted()).toEqual(pending.map(({ entry }) => entry).toSorted());
  });
});

describe('gateways', () => {
  test('there are none at first, and every command says what to do', async () => {
    expect(await cli(['gateways'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('postern pair -'),
    });
    expect((await cli(['gateways', '--json'])).stdout).toBe('[]\n');
    for (const args of [['connect'], ['gateways', 'forget', 'study']]) {
      expect(await cli(args)).toMatchObject({ code: 1, stderr: expect.stringContaining('postern pair -') });
    }
  });

  test('are listed, chosen by name or id, and forgotten', async () => {
    const study = await keepDevice(home, 'study');
    const attic = await keepDevice(home, 'attic');
    const list = await cli(['gateways']);
    expect(list.stdout).toContain(study.gatewayId);
    expect(list.stdout).not.toContain(study.deviceKey);
    const ambiguous = await cli(['connect']);
    expect(ambiguous).toMatchObject({ code: 1, stderr: expect.stringMatching(/which one\?[^]*study[^]*attic/) });
    expect(await cli(['connect', '--gateway', 'cellar'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('study'),
    });
    const forgotten = await cli(['gateways', 'forget', 'study']);
    expect(forgotten).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`postern devices revoke ${study.deviceId}`),
    });
    expect(Object.keys(await entries())).toHaveLength(1);
    const json = await cli(['gateways', 'forget', attic.gatewayId, '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ forgotten: { gateway_name: 'attic', device_id: attic.deviceId } });
    expect(await entries()).toEqual({});
    expect(await cli(['gateways', 'forget', 'attic'])).toMatchObject({ code: 1 });
  });

  test('of one name are told apart by id', async () => {
    const one = await keepDevice(home, 'study');
    await keepDevice(home, 'study');
    expect(await cli(['gateways', 'forget', 'study'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('which one?'),
    });
    expect(await cli(['gateways', 'forget', one.gatewayId.replaceAll(' ', '')])).toMatchObject({ code: 0 });
    expect((await paired()).gateways).toHaveLength(1);
  });

  test('whose keys are gone are said, and can be forgotten', async () => {
    await keepDevice(home, 'study');
    await rm(join(home, 'vault.json'));
    expect(await cli(['connect'])).toMatchObject({ code: 1, stderr: expect.stringContaining('vault.json') });
    expect(await cli(['gateways', 'forget', 'study'])).toMatchObject({ code: 0 });
    await keepDevice(home, 'study');
    expect((await paired()).gateways).toHaveLength(1);
  });

  test('in a damaged list are left as they are', async () => {
    await keepDevice(home, 'study');
    await writeFile(join(home, 'paired.json'), '{"version":1');
    for (const args of [['gateways'], ['connect'], ['gateways', 'forget', 'study']]) {
      expect(await cli(args)).toMatchObject({ code: 1, stderr: expect.stringContaining('paired.json is damaged') });
    }
    expect(await pair(newInvite())).toMatchObject({ code: 1, stderr: expect.stringContaining('damaged') });
    expect(await readFile(join(home, 'paired.json'), 'utf8')).toBe('{"version":1');
  });
});

describe('connect', () => {
  test('serves although home is away, says so, and ends in order', async () => {
    await keepDevice(home, 'study');
    const server = await connectHere();
    expect(await (await fetch(server.url)).text()).toContain('"study"');
    await until(() => server.log().includes('Home cannot be reached.'));
    const answer = await fetch(`${server.url}/v1/models`);
    expect({ status: answer.status, body: await answer.json() }).toEqual({
      status: 503,
      body: {
        error: expect.objectContaining({ code: 'offline', message: expect.stringContaining('Check that it runs') }),
      },
    });
    expect(server.log().match(/cannot be reached/g)).toHaveLength(1);
    server.process.kill('SIGINT');
    expect(await once(server.process, 'exit')).toEqual([0, null]);
    expect(server.log()).toMatch(/Stopping \.\.\.\nStopped\.\n$/);
  });

  test('names the way out where the port is taken', async () => {
    await keepDevice(home, 'study');
    const server = await connectHere();
    const { code, stderr } = await cli(['connect', '--port', String(server.port)]);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(`--port ${server.port + 1}`) });
  });

  test('lets pages in that were named, and takes no list that means all', async () => {
    await keepDevice(home, 'study');
    for (const origin of ['*', 'app.example', 'https://app.example/path', 'null']) {
      expect(await cli(['connect', '--allow-origin', origin]), origin).toMatchObject({ code: 2 });
    }
    const server = await connectHere(
      '--allow-origin',
      'https://app.example',
      '--allow-origin',
      'http://localhost:3000',
    );
    const status = async (origin: string) => (await fetch(server.url, { headers: { origin } })).status;
    expect(await status('https://app.example')).toBe(200);
    expect(await status('http://localhost:3000')).toBe(200);
    expect(await status('https://evil.example')).toBe(403);
  });

  test.each([['--port', 'x'], ['--port', '65536'], ['study']])('is misused with %s %s', async (...args) => {
    await keepDevice(home, 'study');
    expect(await cli(['connect', ...args])).toMatchObject({ code: 2 });
  });
});
