/**
 * Whoever else has an address that the service calls its own is sent what is meant for it: the keys of its clients. So
 * each address that is printed, or written into an invite, has to be the service's.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { askForInviteOn } from '../support/invites.ts';
import { createNetwork, fetchOn, type Machine, type TestNetwork } from '../support/network.ts';
import { beginOn } from '../support/on-machine.ts';
import { has, networkNamespaces } from '../support/requirements.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-expose-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

describe('another program has the port at one of the addresses first', () => {
  let other: Server;
  afterEach(() => void other.close());

  async function take(host: string): Promise<string> {
    other = createServer().listen({ host, port: 0, ipv6Only: true });
    await once(other, 'listening');
    return String((other.address() as AddressInfo).port);
  }

  test.each([
    ['::', ['--expose']],
    ['::1', ['--expose']],
    ['0.0.0.0', ['--expose']],
    ['::', []],
    ['::1', []],
    ['127.0.0.1', []],
  ])('at %s: "serve" with %j does not start, and names the address', async (host, flags) => {
    const port = await take(host);
    const ended = await runCli(['serve', '--port', port, ...flags], { SVC_HOME: home });
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(new RegExp(`port ${port} is in use at (::1?|0\\.0\\.0\\.0|127\\.0\\.0\\.1)\\.`));
  });
});

describe.runIf(has(networkNamespaces))('a machine with two addresses, IPv4 and IPv6', () => {
  let network: TestNetwork;
  const namespaceOf = ({ within }: Machine) => within.at(-1)!;
  const V6 = 'fd77::1';

  beforeAll(async () => {
    network = await createNetwork();
    for (const [machine, address] of [
      [network.home, V6],
      [network.guest, 'fd77::2'],
    ] as const) {
      execFileSync('ip', ['-n', namespaceOf(machine), 'addr', 'add', `${address}/64`, 'dev', machine.device, 'nodad']);
    }
  });
  afterAll(() => network?.remove());

  const printed = (server: TestServer) =>
    [...server.log().matchAll(/http:\/\/\S+?:\d+(?=[\s,]|$)/g)].map(([url]) => url);

  test('at every address that "serve" prints, the service itself answers', async () => {
    const server = await startServer({ home, within: network.home.within, args: ['--expose'] });
    try {
      await until(() => server.log().includes('refused without'));
      const urls = printed(server);
      expect(urls).toEqual([`http://${network.home.address}:${server.port}`, `http://[${V6}]:${server.port}`]);
      for (const url of urls) {
        const answer = await fetchOn(network.guest, `${url}/v1/models`);
        expect([answer.status, answer.body.includes('svc-v1')]).toEqual([401, true]);
      }
    } finally {
      await server.stop();
    }
  });

  test('no other program can have one of them while it runs', async () => {
    const server = await startServer({ home, within: network.home.within, args: ['--expose'] });
    const taking = (host: string, ipv6Only: boolean) => {
      const options = JSON.stringify({ host, port: server.port, ipv6Only });
      const program = `require('node:net').createServer().on('error', (e) => console.log(e.code)).listen(${options}, () => { console.log('taken'); process.exit(); })`;
      const [command, ...args] = [...network.home.within, process.execPath, '-e', program];
      return execFileSync(command, args, { encoding: 'utf8' }).trim();
    };
    try {
      for (const host of ['0.0.0.0', '127.0.0.1', network.home.address, '::', '::1', V6]) {
        expect([host, taking(host, true)]).toEqual([host, 'EADDRINUSE']);
      }
      expect(taking('::', false)).toBe('EADDRINUSE');
    } finally {
      await server.stop();
    }
  });

  test('where IPv6 is switched off, none of its addresses is printed or written into an invite', async () => {
    const off = ['sh', '-c', 'echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && exec "$@"', 'sh'];
    const within = [...network.home.within, ...off];
    const server = await startServer({ home, within, args: ['--expose'] });
    try {
      await until(() => server.log().includes('refused without'));
      expect(printed(server)).toEqual([`http://${network.home.address}:${server.port}`]);
      const code = await askForInviteOn({ ...network.home, within }, server);
      const paired = await beginOn({ within: network.guest.within }, [cliPath, 'pair', '-'], {
        home: join(home, 'laptop'),
        input: code,
      }).ended;
      expect(paired.code).toBe(0);
    } finally {
      await server.stop();
    }
  });
});
