/** A second machine that can reach home through a relay alone, by nothing but the commands. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findInviteCode } from '../../identity/invite-code.ts';
import { askForInvite } from '../support/invites.ts';
import { startTestRelay, type TestRelay } from '../support/relay-here.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

let relay: TestRelay;
let gateway: TestServer;
let laptopHome: string;
let laptop: TestServer | undefined;

beforeAll(async () => {
  relay = await startTestRelay();
  gateway = await startServer({ environment: { SVC_RELAY: relay.origin } });
  laptopHome = await mkdtemp(join(tmpdir(), 'postern-laptop-'));
});
afterAll(async () => {
  await laptop?.stop();
  await gateway?.stop();
  await relay?.close();
  await rm(laptopHome, { recursive: true, force: true });
});

test('is paired by an invite that names no address', async () => {
  await until(async () => {
    const { stdout } = await runCli(['status', '--json'], { SVC_HOME: gateway.home });
    return stdout.includes('"connected"');
  });
  const invite = await askForInvite(gateway);
  expect(findInviteCode(invite)).toMatchObject({ urls: [], relay: { origin: relay.origin } });
  const { code, stderr } = await runCli(['pair', '-', '--yes', '--name', 'far away'], { SVC_HOME: laptopHome }, invite);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(`Relay      ${relay.origin}`) });
  expect((await runCli(['devices'], { SVC_HOME: gateway.home })).stdout).toContain('far away');
});

test('carries calls home, says once which way they go, and comes back when the relay does', async () => {
  laptop = await startServer({ home: laptopHome, program: [cliPath, 'connect'] });
  const { url } = laptop;
  const log = (): string => laptop?.log() ?? '';
  await until(() => log().includes('Connected to home.'));
  const ask = async (): Promise<string> =>
    (
      await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'foundation',
          messages: [{ role: 'user', content: 'What is the capital of France?' }],
        }),
      })
    ).text();
  expect(await ask()).toContain('The capital of France is Paris.');
  const { port } = relay;
  await relay.close();
  expect(await (await fetch(`${url}/v1/models`)).json()).toMatchObject({ error: { code: 'offline' } });
  relay = await startTestRelay({}, { port });
  await until(async () => (await fetch(`${url}/v1/models`)).status === 200);
  expect(await ask()).toContain('The capital of France is Paris.');
  expect(log().split(`Through the relay ${relay.origin} now.`)).toHaveLength(2);
});

test('ends at once when it is stopped', async () => {
  await laptop?.stop();
  expect(laptop?.process.exitCode).toBe(0);
  await until(() => relay.log.some((line) => line.includes('client gone')));
});
