/** A laptop that was paired before home had a relay, and before it had this address: it learns both by itself. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { askForInvite } from '../support/invites.ts';
import { startTestRelay, type TestRelay } from '../support/relay-here.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const NOTED = 'this machine has taken note of it';

let relay: TestRelay;
let home: string;
let laptopHome: string;
let gateway: TestServer;
let laptop: TestServer | undefined;

beforeAll(async () => {
  relay = await startTestRelay();
  home = await mkdtemp(join(tmpdir(), 'postern-home-'));
  laptopHome = await mkdtemp(join(tmpdir(), 'postern-laptop-'));
  gateway = await startServer({ home });
  const invite = await askForInvite(gateway);
  expect(await runCli(['pair', '-', '--yes'], { SVC_HOME: laptopHome }, invite)).toMatchObject({ code: 0 });
});
afterAll(async () => {
  await laptop?.stop();
  await gateway?.stop();
  await relay?.close();
  for (const folder of [home, laptopHome]) await rm(folder, { recursive: true, force: true });
});

async function connect(): Promise<TestServer> {
  laptop = await startServer({ home: laptopHome, program: [cliPath, 'connect'] });
  return laptop;
}
const modelsAt = async (url: string) => (await fetch(`${url}/v1/models`)).status;

test('home did not move: nothing is said', async () => {
  const here = await connect();
  await until(() => here.log().includes('Connected to home.'));
  expect(await modelsAt(here.url)).toBe(200);
  await here.stop();
  expect(here.log()).not.toContain(NOTED);
});

test('home takes a relay: the laptop hears of it while it is near, and a moment later can be anywhere', async () => {
  const { port } = gateway;
  await gateway.stop();
  gateway = await startServer({ home, args: ['--port', String(port), '--relay', relay.origin] });
  await until(async () => (await runCli(['relay', 'status'], { SVC_HOME: home })).code === 0);
  const here = await connect();
  await until(() => here.log().includes(NOTED));
  await gateway.stop();
  // Another port is as good as another network: what the laptop was paired with leads nowhere.
  gateway = await startServer({ home, args: ['--relay', relay.origin] });
  await until(async () => (await runCli(['relay', 'status'], { SVC_HOME: home })).code === 0);
  await until(async () => (await modelsAt(here.url)) === 200);
  expect(here.log()).toContain(`Through the relay ${relay.origin} now.`);
  await here.stop();
});

test('what it has heard is kept', async () => {
  const here = await connect();
  await until(() => here.log().includes('Connected to home.'));
  expect(await modelsAt(here.url)).toBe(200);
  expect(here.log()).toContain(`Through the relay ${relay.origin} now.`);
});
