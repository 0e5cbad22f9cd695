/** Connections cost the service files, of which the system gives it so many: strangers must not get them all. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createKey } from '../support/access-keys.ts';
import { createNetwork, fetchOn, type TestNetwork } from '../support/network.ts';
import { requestAll } from '../support/requests.ts';
import { has, networkNamespaces } from '../support/requirements.ts';
import { startServer, type TestServer } from '../support/server.ts';

const program = fileURLToPath(new URL('../../dist/test/support/holding-program.js', import.meta.url));
const OPEN_FILES = 512;
const CONNECTIONS = 700;
/** The addresses of the other machine. */
const STRANGERS = ['10.77.0.2', '10.77.0.3', '10.77.0.4'] as const;

interface Holding {
  readonly host: string;
  readonly held: number;
  readonly from: readonly string[];
}

describe.runIf(has(networkNamespaces))(`a service that may open ${OPEN_FILES} files`, () => {
  let home: string;
  let network: TestNetwork;
  let server: TestServer;
  let token: string;
  const holders: ChildProcess[] = [];

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'postern-held-'));
    token = (await createKey(home)).token;
    network = await createNetwork();
    const { within, device } = network.guest;
    for (const address of STRANGERS.slice(1))
      execFileSync('ip', ['-n', within.at(-1)!, 'addr', 'add', `${address}/24`, 'dev', device]);
    const limited = ['prlimit', `--nofile=${OPEN_FILES}:${OPEN_FILES}`];
    server = await startServer({ home, within: [...network.home.within, ...limited], args: ['--expose'] });
  });
  afterEach(() => letGo());
  afterAll(async () => {
    await server?.stop();
    await network?.remove();
    await rm(home, { recursive: true, force: true });
  });

  async function letGo(): Promise<void> {
    for (const holder of holders.splice(0)) {
      const ended = once(holder, 'exit');
      holder.stdin?.end();
      await ended;
    }
  }

  /** Until no more than `held` are left. @returns how many were refused, and how */
  async function hold(
    within: readonly string[],
    { host, held, from }: Holding,
  ): Promise<Readonly<Record<string, number>>> {
    const numbers = [server.port, CONNECTIONS, held].map(String);
    const [command = '', ...args] = [...within, process.execPath, program, host, ...numbers, ...from];
    const holder = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    holders.push(holder);
    for await (const line of createInterface(holder.stdout)) return JSON.parse(line) as Record<string, number>;
    throw new Error('the program ended before');
  }

  const statusHere = async () => (await fetchOn(network.home, `http://127.0.0.1:${server.port}/v1/models`)).status;
  const statusFrom = async (from: string) => {
    const url = `http://${network.home.address}:${server.port}/v1/models`;
    const headers = { authorization: `Bearer ${token}` };
    return (await requestAll(network.guest.within, [{ url, method: 'GET', headers, from }]))[0]!.status;
  };

  test('one stranger’s address keeps no more than its share, and nobody out, not even at that address', async () => {
    const held = OPEN_FILES / 8;
    const asked = { host: network.home.address, held, from: [STRANGERS[0]] };
    expect(await hold(network.guest.within, asked)).toEqual({ cut: CONNECTIONS - held });
    expect([await statusHere(), await statusFrom(STRANGERS[1]), await statusFrom(STRANGERS[0])]).toEqual([
      200, 200, 200,
    ]);
  });

  test('many addresses leave to this machine what it needs, and keep nobody out', async () => {
    const held = OPEN_FILES / 4;
    const asked = { host: network.home.address, held, from: STRANGERS };
    expect(await hold(network.guest.within, asked)).toEqual({ cut: CONNECTIONS - held });
    expect([await statusHere(), await statusFrom(STRANGERS[0])]).toEqual([200, 200]);
  });

  test('a program on this machine keeps nobody out, and does not end it', async () => {
    await hold(network.home.within, { host: '127.0.0.1', held: OPEN_FILES / 2, from: ['127.0.0.1'] });
    expect([await statusHere(), await statusFrom(STRANGERS[0])]).toEqual([200, 200]);
    expect([server.process.exitCode, server.log()]).toEqual([null, expect.not.stringMatching(/went wrong/)]);
  });
});
