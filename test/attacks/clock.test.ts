/** A clock that is set back, or was wrongly ahead: what had expired stays expired, and one mistake lasts no longer. */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ggufModel } from '../support/gguf.ts';
import { startStubHub } from '../support/stub-hub.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';
import { startRelayProcess } from '../support/relay-process.ts';
import { until } from '../support/wait.ts';
import { WritingScenario } from '../support/writing-scenario.ts';

const preload = new URL('../support/other-clock.mjs', import.meta.url).href;
const HOUR_MS = 3_600_000;
const YEARS_MS = 14 * 365 * 24 * HOUR_MS;

let folder: string;
let home: string;
let offsets: { wallMs: number; monotonicMs: number };
const servers: TestServer[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-clock-'));
  home = join(folder, 'home');
  await turn({ wallMs: 0, monotonicMs: 0 });
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await rm(folder, { recursive: true, force: true });
});

const clockFile = () => join(folder, 'clock.json');
async function turn(to: Partial<typeof offsets>): Promise<void> {
  offsets = { ...offsets, ...to };
  await writeFile(`${clockFile()}.new`, JSON.stringify(offsets));
  await rename(`${clockFile()}.new`, clockFile());
}
/** As time does, for both clocks. */
const pass = (ms: number) => turn({ wallMs: offsets.wallMs + ms, monotonicMs: offsets.monotonicMs + ms });

async function start(...args: string[]): Promise<TestServer> {
  // A key is asked for here, too.
  await runCli(['settings', 'set', 'access.requireKeyOnLoopback', 'true'], { SVC_HOME: home });
  return begin(...args);
}

async function begin(...args: string[]): Promise<TestServer> {
  return beginWith({}, ...args);
}

async function beginWith(environment: Record<string, string>, ...args: string[]): Promise<TestServer> {
  const program = ['--import', preload, cliPath, 'serve'];
  const server = await startServer({ home, program, args, environment: { CLOCK_FILE: clockFile(), ...environment } });
  servers.push(server);
  await until(() => server.log().includes('Secrets are in'));
  return server;
}

async function restart(...args: string[]): Promise<TestServer> {
  await servers.pop()?.stop();
  return start(...args);
}

async function admin(server: TestServer, method: string, path: string, body?: object) {
  const response = await fetch(`${server.url}/admin/${path}`, {
    method,
    headers: { 'x-postern-run-token': await server.runToken(), 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Record<string, unknown>;
}

const statusWith = async ({ url }: TestServer, token: string): Promise<number> =>
  (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })).status;
const keyFor = async (server: TestServer, seconds: number): Promise<string> =>
  String((await admin(server, 'POST', 'keys', { expires_in_seconds: seconds }))['token']);
const inviteStates = async (server: TestServer) =>
  ((await admin(server, 'GET', 'invites'))['invites'] as { state: string }[]).map(({ state }) => state);
const cli = (...args: string[]) =>
  runCli(args, { SVC_HOME: home, CLOCK_FILE: clockFile(), NODE_OPTIONS: `--import=${preload}` });

describe('a clock that is set back', () => {
  test('revives no access key and no invite: not while the service runs, not after a restart, not for the owner', async () => {
    let server = await start();
    const [short, long] = [await keyFor(server, 3600), await keyFor(server, 86_400)];
    await admin(server, 'POST', 'invites', { expires_in_seconds: 600 });
    expect([await statusWith(server, short), await inviteStates(server)]).toEqual([200, ['open']]);
    await pass(2 * HOUR_MS);
    expect([await statusWith(server, short), await inviteStates(server)]).toEqual([401, ['expired']]);
    await turn({ wallMs: 0 });
    expect([await statusWith(server, short), await inviteStates(server)]).toEqual([401, ['expired']]);
    server = await restart();
    expect([await statusWith(server, short), await inviteStates(server)]).toEqual([401, ['expired']]);
    expect(await statusWith(server, long)).toBe(200);
    expect(server.log()).toMatch(/this machine's clock says .* has seen .* already/);
    expect((await cli('doctor')).stdout).toMatch(/warning +clock +this machine's clock says/);
    await servers.pop()?.stop();
    const { stdout } = await cli('keys', 'list', '--json');
    const statuses = (JSON.parse(stdout) as { status: string }[]).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual(['active', 'expired']);
  });
});

describe('a clock that was ahead by years', () => {
  test('is believed while it is, and no longer', async () => {
    let server = await start();
    const key = await keyFor(server, 3600);
    await turn({ wallMs: YEARS_MS });
    expect(await statusWith(server, key)).toBe(401);
    await turn({ wallMs: 0 });
    expect(await statusWith(server, key)).toBe(200);
    await turn({ wallMs: YEARS_MS });
    server = await restart();
    expect(await statusWith(server, key)).toBe(401);
    await turn({ wallMs: 0 });
    expect(await statusWith(server, key)).toBe(200);
    server = await restart();
    expect(await statusWith(server, key)).toBe(200);
  });

  test('for long is forgotten when its owner says so', async () => {
    let server = await start();
    const key = await keyFor(server, 3600);
    await turn({ wallMs: YEARS_MS });
    expect(await statusWith(server, key)).toBe(401);
    await pass(600_000);
    expect(await statusWith(server, key)).toBe(401);
    await turn({ wallMs: 600_000 });
    expect(await statusWith(server, key)).toBe(401);
    server = await restart('--trust-clock');
    expect(await statusWith(server, key)).toBe(200);
    expect(server.log()).not.toContain("machine's clock");
  });
});

describe('a clock that is right, for minutes, hours and a day', () => {
  test('everything is written as in the first minute', async () => {
    const relay = await startRelayProcess();
    const hub = await startStubHub();
    hub.repositories.set('org/tiny', { files: { 'tiny.gguf': ggufModel() } });
    try {
      const server = await beginWith({ HF_ENDPOINT: hub.url, HF_TOKEN: '' }, '--relay', relay.origin);
      // A time is certain after five minutes.
      for (const minutes of [0, 6, 5 * 60, 20 * 60]) {
        await pass(minutes * 60_000);
        const scenario = new WritingScenario(server);
        await scenario.run();
        scenario.expectWhole();
      }
      expect(server.log()).not.toMatch(/failed|went wrong/);
    } finally {
      await hub.close();
      await relay.end('SIGTERM');
    }
  });
});
