/** A gateway at home and a second laptop, each in a network namespace of its own, by nothing but the commands. */
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNetwork, fetchOn, type Machine, type TestNetwork } from '../support/network.ts';
import { beginOn, laptopClientsOn, PARIS } from '../support/on-machine.ts';
import { has, networkNamespaces } from '../support/requirements.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

describe.runIf(has(networkNamespaces))('a second laptop', () => {
  let network: TestNetwork;
  let gateway: TestServer;
  let laptopHome: string;
  let laptop: TestServer;
  let gatewayId: string;

  beforeAll(async () => {
    network = await createNetwork();
    gateway = await startServer({ within: network.home.within, args: ['--expose'] });
    laptopHome = await mkdtemp(join(tmpdir(), 'postern-laptop-'));
  });
  afterAll(async () => {
    await laptop?.stop();
    await gateway?.stop();
    await rm(laptopHome, { recursive: true, force: true });
    await network?.remove();
  });

  const begin = (machine: Machine, program: readonly string[], home: string, input = '') =>
    beginOn(machine, program, { home, input });
  /** The invite, when it can be used; its command goes on until it was. */
  async function invite(...args: string[]): Promise<string> {
    const { child } = begin(network.home, [cliPath, 'invite', ...args], gateway.home);
    return String(await once(child.stdout, 'data')).trim();
  }
  const pair = (invitation: string, ...args: string[]) =>
    begin(network.guest, [cliPath, 'pair', '-', ...args], laptopHome, invitation);
  /** Home takes five handshakes in ten seconds, and here is more going on than a person does. */
  const isTooSoon = (words: string) => words.includes('Try again in a moment');
  const connect = () => startServer({ home: laptopHome, within: network.guest.within, program: [cliPath, 'connect'] });
  const onLaptop = (path: string, init?: RequestInit) => fetchOn(network.guest, laptop.url + path, init);
  const atHome = (...args: string[]) => begin(network.home, [cliPath, ...args], gateway.home).ended;

  test('is paired by what "postern invite" printed', async () => {
    const { code, stdout, stderr } = await pair(await invite(), '--name', 'my laptop', '--json').ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('postern connect') });
    const { device_id: deviceId, gateway_id } = JSON.parse(stdout) as Record<string, string>;
    gatewayId = gateway_id!;
    expect(stderr.indexOf(gatewayId)).toBeLessThan(stderr.indexOf('Secrets are in'));
    expect(stderr).toContain(`http://${network.home.address}:${gateway.port}`);
    expect((await atHome('identity', 'show')).stdout).toContain(gatewayId);
    expect((await atHome('devices')).stdout).toContain(deviceId);
    expect((await atHome('devices')).stdout).toContain('my laptop');
    const { stdout: listed } = await runCli(['gateways', '--json'], { SVC_HOME: laptopHome });
    expect(JSON.parse(listed)).toMatchObject([{ gateway_id: gatewayId, device_id: deviceId }]);
  });

  test('serves official clients there that know nothing of it', async () => {
    laptop = await connect();
    await until(() => laptop.log().includes('Connected to home.'));
    expect(await laptopClientsOn(network.guest, laptop.url, laptopHome)).toEqual(PARIS);
  });

  test('is a device there and not the owner, whatever it asks for', async () => {
    for (const path of ['/admin/status', '/v1/../admin/status', '/secure/call', '/pair-invite', '//admin/status']) {
      const { status } = await onLaptop(path, path === '/admin/status' ? {} : { method: 'POST', body: '{}' });
      expect([400, 403, 404, 405], path).toContain(status);
    }
  });

  test('can be reached by nobody but itself', async () => {
    const port = new URL(laptop.url).port;
    expect(await fetchOn(network.home, `http://${network.guest.address}:${port}/`)).toMatchObject({
      error: 'ECONNREFUSED',
    });
    expect(await onLaptop('/v1/models', { headers: { origin: 'https://evil.example' } })).toMatchObject({
      status: 403,
    });
  });

  test('keeps no prompt and shows no key', async () => {
    await onLaptop('/v1/chat/completions', {
      method: 'POST',
      body: '{"model":"foundation","messages":[{"role":"user","content":"CANARY"}]}',
    });
    expect(laptop.log()).not.toContain('CANARY');
    const entry = JSON.parse(await readFile(join(laptopHome, 'paired.json'), 'utf8')) as object;
    expect(JSON.stringify(entry)).not.toMatch(/[A-Za-z0-9_-]{43}/);
  });

  test('is told of by its owner: revoked, it is turned away, and paired again it is let in', async () => {
    const list = JSON.parse((await atHome('devices', '--json')).stdout) as { id: string }[];
    expect(await atHome('devices', 'revoke', list[0]!.id)).toMatchObject({ code: 0 });
    expect(await onLaptop('/v1/models')).toMatchObject({ status: 401, body: expect.stringContaining('pair') });
    await until(() => laptop.log().includes('Home does not let this machine in.'));
    await laptop.stop();
    const invitation = await invite('--bearer');
    const again = await until(async () => {
      const outcome = await pair(invitation).ended;
      return !isTooSoon(outcome.stderr) && outcome;
    });
    expect(again).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`takes the place of device ${list[0]!.id}`),
    });
    const { stdout: key } = await runCli(['gateways', 'key', gatewayId], { SVC_HOME: laptopHome });
    const plain = { headers: { authorization: `Bearer ${key.trim()}` } };
    const direct = `http://${network.home.address}:${gateway.port}/v1/models`;
    expect(await fetchOn(network.guest, direct, plain)).toMatchObject({ status: 200 });
    laptop = await connect();
    await until(async () => (await onLaptop('/v1/models')).status === 200);
  });

  test('waits for its owner where they want to be asked', async () => {
    const invitation = await invite('--approve');
    let asking = pair(invitation);
    const id = await until(async () => {
      if (asking.child.exitCode !== null && isTooSoon(asking.words())) asking = pair(invitation);
      const { stdout } = await atHome('approvals', '--json');
      return (JSON.parse(stdout) as { id: string }[])[0]?.id;
    });
    expect(asking.words()).toContain('The owner at home has to say yes');
    expect(await atHome('approve', id)).toMatchObject({ code: 0 });
    expect(await asking.ended).toMatchObject({ code: 0 });
  });

  test('says that home went away, and that it is back', async () => {
    const { home, port } = gateway;
    gateway.process.kill('SIGTERM');
    await once(gateway.process, 'exit');
    expect((await onLaptop('/v1/models')).status).toBeGreaterThanOrEqual(502);
    await until(() => laptop.log().includes('Home cannot be reached.'));
    // The last of two flags counts.
    const back = await startServer({ home, within: network.home.within, args: ['--expose', '--port', String(port)] });
    gateway = { ...back, stop: async () => (await back.stop(), rm(home, { recursive: true, force: true })) };
    await until(() => laptop.log().endsWith('Connected to home.\n'));
    expect(await onLaptop('/v1/models')).toMatchObject({ status: 200 });
  });
});
