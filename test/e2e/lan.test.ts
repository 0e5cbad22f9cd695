/** A second machine on the network, in a network namespace of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createKey } from '../support/access-keys.ts';
import { createNetwork, fetchOn, type TestNetwork } from '../support/network.ts';
import { has, networkNamespaces } from '../support/requirements.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

describe.runIf(has(networkNamespaces))('from another machine', () => {
  let network: TestNetwork;
  let server: TestServer;

  beforeAll(async () => {
    network = await createNetwork();
    server = await startServer({ within: network.home.within, args: ['--expose'] });
  });
  afterAll(async () => {
    await server?.stop();
    await network?.remove();
  });

  const at = (path: string, init?: RequestInit) =>
    fetchOn(network.guest, `http://${network.home.address}:${server.port}${path}`, init);

  test('a caller without a key gets the anonymous column of the table', async () => {
    const chat = { method: 'POST', body: '{"model":"foundation","messages":[{"role":"user","content":"Hello"}]}' };
    expect(await at('/')).toMatchObject({ status: 200 });
    expect(JSON.parse((await at('/health')).body)).toEqual({ status: 'healthy', timestamp: expect.any(String) });
    expect(await at('/v1/models')).toMatchObject({ status: 401 });
    expect(await at('/v1/chat/completions', chat)).toMatchObject({ status: 401 });
    expect(await at('/agents/x/run', { method: 'POST' })).toMatchObject({ status: 401 });
    expect(await at('/admin/status')).toMatchObject({ status: 403 });
    expect(await at('/admin/shutdown', { method: 'POST' })).toMatchObject({ status: 403 });
  });

  test('the owner has it all at loopback; at the LAN address nobody is the owner', async () => {
    const own = await fetchOn(network.home, `http://127.0.0.1:${server.port}/admin/status`);
    expect(own.status).toBe(200);
    // The connection comes from the LAN address then, which anybody on the LAN could have.
    expect((await fetchOn(network.home, `http://${network.home.address}:${server.port}/v1/models`)).status).toBe(401);
  });

  test('serve says where it is reached, that callers need a key, and how to make one where there is none', async () => {
    const words = await starting(undefined);
    expect(words).toContain(`http://${network.home.address}:`);
    expect(words).toMatch(/refused without an access key\.\n.*"postern keys create"/);
    const home = await mkdtemp(join(tmpdir(), 'postern-lan-'));
    await createKey(home);
    expect(await starting(home)).not.toContain('keys create');
    await rm(home, { recursive: true });
  });

  /** What a person is told at the start. */
  async function starting(home: string | undefined): Promise<string> {
    const exposed = await startServer({
      within: network.home.within,
      args: ['--expose'],
      ...(home === undefined ? {} : { home }),
    });
    await until(() => exposed.log().includes('Secrets are'));
    await exposed.stop();
    return exposed.log();
  }

  test('without --expose nobody answers at the LAN address', async () => {
    const closed = await startServer({ within: network.home.within });
    try {
      const answer = await fetchOn(network.guest, `http://${network.home.address}:${closed.port}/`);
      expect(answer.error).toBe('ECONNREFUSED');
    } finally {
      await closed.stop();
    }
  });
});
