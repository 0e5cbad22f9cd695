/**
 * From anywhere: a gateway at home, a relay, and a laptop that can't reach the gateway but through it, each in a network
 * namespace of its own, by nothing but the commands of the README. The relay has a certificate.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { createRelayedNetwork, fetchOn, type Machine, type RelayedNetwork } from '../support/network.ts';
import { beginOn, laptopClientsOn, PARIS } from '../support/on-machine.ts';
import { startRelayProcess, type RelayProcess } from '../support/relay-process.ts';
import { endless } from '../support/request-log.ts';
import { has, networkNamespaces, openssl } from '../support/requirements.ts';
import { cliPath, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const reader = new URL('../../dist/test/support/stream-reader-program.js', import.meta.url).pathname;

describe.runIf([networkNamespaces, openssl].every(has))('a laptop that is somewhere else', () => {
  let network: RelayedNetwork;
  let folder: string;
  let relay: RelayProcess;
  let gateway: TestServer;
  let laptop: TestServer;
  let trusting: { readonly NODE_EXTRA_CA_CERTS: string };
  let deviceId: string;

  beforeAll(async () => {
    network = await createRelayedNetwork();
    folder = await mkdtemp(join(tmpdir(), 'postern-relayed-'));
    const { cert, key } = await makeCertificate(folder, network.relay.address);
    trusting = { NODE_EXTRA_CA_CERTS: cert };
    relay = await startRelayProcess(0, ['--tls-cert', cert, '--tls-key', key], {
      host: network.relay.address,
      within: network.relay.within,
    });
    gateway = await startServer({
      within: network.home.within,
      args: ['--expose', '--relay', relay.origin],
      environment: trusting,
    });
    await until(async () => (await begin(network.home, [cliPath, 'relay', 'status'], gateway.home).ended).code === 0);
  });
  afterAll(async () => {
    await laptop?.stop();
    await gateway?.stop();
    await relay?.end('SIGKILL');
    await rm(folder, { recursive: true, force: true });
    await network?.remove();
  });

  const begin = (machine: Machine, program: readonly string[], home: string, input = '') =>
    beginOn(machine, program, { home, input, environment: trusting });
  /** Within a second, which is a lot on one machine. */
  function reaches({ within }: Machine, address: string, port: number): boolean {
    const [command, ...args] = [...within, 'timeout', '1', 'bash', '-c', `exec 3<>/dev/tcp/${address}/${port}`];
    return spawnSync(command, args).status === 0;
  }
  const atHome = (...args: string[]) => begin(network.home, [cliPath, ...args], gateway.home).ended;
  const onLaptop = (...args: string[]) => begin(network.guest, [cliPath, ...args], join(folder, 'laptop')).ended;

  test('cannot reach home', () => {
    const { home, guest } = network;
    expect(reaches(home, home.address, gateway.port)).toBe(true);
    expect(reaches(guest, network.relay.address, relay.port)).toBe(true);
    expect(reaches(guest, home.address, gateway.port)).toBe(false);
  });

  test('is paired through the relay, by what "postern invite" printed', async () => {
    const { child } = begin(network.home, [cliPath, 'invite'], gateway.home);
    const invite = String(await once(child.stdout, 'data')).trim();
    const paired = await begin(network.guest, [cliPath, 'pair', '-', '--json'], join(folder, 'laptop'), invite).ended;
    expect(paired, paired.stderr).toMatchObject({ code: 0 });
    ({ device_id: deviceId } = JSON.parse(paired.stdout) as { device_id: string });
    expect((await atHome('devices')).stdout).toMatch(new RegExp(`${deviceId.slice(0, 8)}.*through a relay`));
  });

  test('serves official clients there, through the relay', async () => {
    laptop = await startServer({
      home: join(folder, 'laptop'),
      within: network.guest.within,
      program: [cliPath, 'connect'],
      environment: trusting,
    });
    await until(() => laptop.log().includes(relay.origin));
    expect(await laptopClientsOn(network.guest, laptop.url, folder)).toEqual(PARIS);
  });

  test('is a device there and not the owner', async () => {
    const { status } = await fetchOn(network.guest, `${laptop.url}/admin/status`);
    expect(status).toBe(403);
  });

  test('revoked at home in the middle of a stream, its client is told so', async () => {
    const asked = JSON.stringify({ url: laptop.url, ...endless });
    const { child, ended } = begin(network.guest, [reader], folder, asked);
    await once(child.stderr, 'data');
    expect(await atHome('devices', 'revoke', deviceId)).toMatchObject({ code: 0 });
    const { stdout } = await ended;
    expect(stdout).toMatch(/revoked/);
    expect(relay.log()).not.toContain(deviceId);
    const refused = await fetchOn(network.guest, `${laptop.url}/v1/models`);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect((await onLaptop('gateways')).code).toBe(0);
  });
});
