/** `postern pair --discover` on a second machine: the gateway is found by mDNS, and its code typed there. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createNetwork, fetchOn, type Machine, type TestNetwork } from '../support/network.ts';
import { has, networkNamespaces } from '../support/requirements.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

interface Shown {
  readonly name: string;
  readonly url: string;
  readonly gateway_id: string;
}

describe.runIf(has(networkNamespaces))('another machine in the network', () => {
  let network: TestNetwork;
  let gateway: TestServer;
  let gatewayHome: string;
  let laptopHome: string;

  beforeAll(async () => {
    network = await createNetwork();
    gatewayHome = await mkdtemp(join(tmpdir(), 'postern-gateway-'));
    laptopHome = await mkdtemp(join(tmpdir(), 'postern-laptop-'));
  });
  // A new run has counted no challenges yet: here is more going on than a person does.
  beforeEach(async () => {
    gateway = await startServer({ home: gatewayHome, within: network.home.within, args: ['--expose'] });
  });
  afterEach(() => gateway.stop());
  afterAll(async () => {
    await rm(gatewayHome, { recursive: true, force: true });
    await rm(laptopHome, { recursive: true, force: true });
    await network?.remove();
  });

  const url = () => `http://${network.home.address}:${gateway.port}`;

  function begin(machine: Machine, home: string, args: readonly string[]) {
    const [command, ...rest] = [...machine.within, process.execPath, cliPath, ...args];
    const child = spawn(command!, rest, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, SVC_HOME: home, SVC_IDENTITY_STORE: 'vault' },
    });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const ended = Promise.all([text(child.stdout), once(child, 'close')]).then(([stdout, [code]]) => ({
      code: code as number | null,
      stdout,
      stderr,
    }));
    return { child, ended };
  }
  const pair = (...args: string[]) => begin(network.guest, laptopHome, ['pair', '--discover', ...args]);
  const atHome = (...args: string[]) => begin(network.home, gateway.home, args).ended;
  const listed = async () => {
    const { child, ended } = pair('--json');
    child.stdin.end();
    return JSON.parse((await ended).stdout) as Shown[];
  };
  /** As the owner reads it off the screen. */
  const codeAtHome = () =>
    until(async () => {
      const { stdout } = await atHome('approvals');
      return /│ {3}((?:\d ?){6}) {2}│/u.exec(stdout)?.[1];
    });
  const wrong = (code: string) => code.replace(/\d/u, (digit) => String((Number(digit) + 1) % 10));

  test('lists the gateway with name, address and fingerprint', async () => {
    const found = await until(async () => {
      const one = await listed();
      return one.length > 0 && one;
    });
    const { stdout } = await atHome('identity', 'show');
    expect(found).toEqual([{ name: expect.any(String), url: url(), gateway_id: expect.any(String) }]);
    expect(stdout).toContain(found[0]!.gateway_id);
    const { child, ended } = pair();
    child.stdin.end();
    expect(await ended).toMatchObject({ code: 0, stdout: expect.stringContaining(found[0]!.gateway_id) });
  });

  test('is paired by the code that the owner reads, after one that is wrong', async () => {
    const { child, ended } = pair(url(), '--name', 'my laptop', '--json');
    const code = await codeAtHome();
    child.stdin.end(`${wrong(code)}\n${code}\n`);
    const { code: status, stdout, stderr } = await ended;
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining('Two tries are left.') });
    const { device_id: id, urls } = JSON.parse(stdout) as { device_id: string; urls: string[] };
    expect(urls).toContain(url());
    const { stdout: devices } = await atHome('devices');
    expect(devices).toContain(id);
    expect(devices).toContain('my laptop');
    const { stdout: gateways } = await runCli(['gateways', '--json'], { SVC_HOME: laptopHome });
    expect(JSON.parse(gateways)).toMatchObject([{ device_id: id }]);
    expect(gateway.log() + stderr).not.toContain(code.replaceAll(' ', ''));
    await runCli(['gateways', 'forget', (JSON.parse(gateways) as { gateway_name: string }[])[0]!.gateway_name], {
      SVC_HOME: laptopHome,
    });
  });

  test.each([
    [
      'code_wrong',
      'wrong three times',
      (code: string) => [wrong(code), wrong(code), wrong(code)].join('\n'),
      'Begin again',
    ],
    ['denied', 'denied', (code: string) => code, 'said no'],
    ['no code', 'not typed', () => '', 'no six digits'],
  ])('is told how it ended: %s', async (kind, _, typed, words) => {
    const { child, ended } = pair(url());
    const code = await codeAtHome();
    if (kind !== 'code_wrong') {
      const { stdout } = await atHome('approvals', '--json');
      await atHome('deny', (JSON.parse(stdout) as { id: string }[])[0]!.id);
    }
    child.stdin.end(typed(code));
    expect(await ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(words) });
    const { stdout } = await runCli(['gateways', '--json'], { SVC_HOME: laptopHome });
    expect(JSON.parse(stdout)).toEqual([]);
  });

  test('can send what it likes to the mDNS port: the gateway goes on', async () => {
    const noise = `
      const socket = require('node:dgram').createSocket('udp4');
      const { randomBytes } = require('node:crypto');
      const questions = (count, rest) => Buffer.concat([Buffer.from([0, 0, 0, 0, 0, count, 0, 0, 0, 0, 0, 0]), rest]);
      const name = Buffer.from('\\x04_svc\\x04_tcp\\x05local\\x00', 'latin1');
      socket.bind(0, () => {
        const all = Array.from({ length: 300 }, (_, at) =>
          at % 3 === 0 ? randomBytes(at) : questions(1 + at % 5, Buffer.concat([at % 2 ? name : randomBytes(9), randomBytes(at % 40)])));
        Promise.all(all.map((one) => new Promise((done) => socket.send(one, 5353, process.argv[1], done)))).then(() => socket.close());
      });`;
    const [command, ...rest] = [...network.guest.within, process.execPath, '-e', noise, network.home.address];
    expect(await once(spawn(command, rest, { stdio: 'inherit' }), 'close')).toEqual([0, null]);
    expect((await fetchOn(network.guest, `${url()}/health`)).status).toBe(200);
    expect(gateway.process.exitCode).toBeNull();
  });

  test('finds nothing where the owner does not say so, or has gone', async () => {
    await gateway.stop();
    expect(await listed()).toEqual([]);
    await runCli(['settings', 'set', 'pairing.advertise', 'false'], { SVC_HOME: gatewayHome });
    gateway = await startServer({ home: gatewayHome, within: network.home.within, args: ['--expose'] });
    expect(await listed()).toEqual([]);
    const { child, ended } = pair();
    child.stdin.end();
    expect(await ended).toMatchObject({ code: 1, stderr: expect.stringContaining('no gateway answers') });
    await runCli(['settings', 'unset', 'pairing.advertise'], { SVC_HOME: gatewayHome });
    // By its address it is found all the same.
    expect((await fetchOn(network.guest, `${url()}/pair/challenge`)).status).toBe(200);
  });

  test('hears nothing of a service that listens on its own machine alone', async () => {
    await until(hasMdnsSocket);
    await gateway.stop();
    gateway = await startServer({ home: gatewayHome, within: network.home.within });
    // Longer than the other one took to say that it is there.
    expect(await listed()).toEqual([]);
    expect(await hasMdnsSocket()).toBe(false);
  });

  /** Whether any program at home has UDP port 5353, which is 14E9 in hexadecimal. */
  async function hasMdnsSocket(): Promise<boolean> {
    const [command, ...rest] = [...network.home.within, 'cat', '/proc/net/udp'];
    const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
    return (await text(child.stdout)).includes(':14E9 ');
  }
});
