/** mDNS of a machine that is in two networks, only one of which its system would send to by itself. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRelayedNetwork, type RelayedNetwork } from '../support/network.ts';
import { has, networkNamespaces } from '../support/requirements.ts';
import { cliPath, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

type Within = readonly string[];

describe.runIf(has(networkNamespaces))('a machine in two networks', () => {
  let network: RelayedNetwork;
  let folder: string;
  const servers: TestServer[] = [];

  beforeEach(async () => {
    // The one in the middle is in both; the two others are in one each.
    network = await createRelayedNetwork();
    folder = await mkdtemp(join(tmpdir(), 'postern-networks-'));
  });
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop()));
    await network.remove();
    await rm(folder, { recursive: true, force: true });
  });

  async function expose(within: Within, name: string): Promise<TestServer> {
    const server = await startServer({ home: join(folder, name), within, args: ['--expose'] });
    servers.push(server);
    return server;
  }

  function found(within: Within): Promise<readonly string[]> {
    const [command, ...rest] = [...within, process.execPath, cliPath, 'pair', '--discover', '--json'];
    const env = { ...process.env, SVC_HOME: join(folder, 'asking'), SVC_IDENTITY_STORE: 'vault' };
    return new Promise((resolve, reject) => {
      const child = execFile(command, rest, { env }, (error, stdout) =>
        error === null ? resolve((JSON.parse(stdout) as { url: string }[]).map(({ url }) => url)) : reject(error),
      );
      child.stdin?.end();
    });
  }

  test('is found from either of them', async () => {
    const { port } = await expose(network.relay.within, 'middle');
    await until(async () => (await found(network.guest.within)).includes(`http://10.77.2.2:${port}`));
    await until(async () => (await found(network.home.within)).includes(`http://10.77.1.2:${port}`));
  });

  test('finds what is in either of them', async () => {
    const home = await expose(network.home.within, 'home');
    const guest = await expose(network.guest.within, 'guest');
    const urls = [`http://10.77.1.1:${home.port}`, `http://10.77.2.1:${guest.port}`].toSorted();
    const all = async () => (await found(network.relay.within)).toSorted();
    await until(async () => (await all()).length === urls.length);
    // What was heard once may have been said without a question: so it is while a gateway starts.
    for (let again = 0; again < 3; again++) expect(await all()).toEqual(urls);
  });
});
