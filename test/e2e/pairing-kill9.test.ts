/**
 * A gateway that is killed at any moment of a pairing and started again: either both sides have the device, or the invite
 * is over and neither has.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { connect, pair, type PairedDevice, type SecretStorage } from '../../clients/sdk/index.ts';
import { askForInvite } from '../support/invites.ts';
import { isThorough } from '../support/sampling.ts';
import { codeOf } from '../support/sealed-client.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const ROUNDS = isThorough ? 25 : 4;
const crypto = gatewayCrypto('node');
/** Longer than a pairing takes once its request is on the way, on a busy machine as well. */
const LATEST_KILL_MS = 40;

let home: string;
let gateway: TestServer;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-kill9-'));
  gateway = await startServer({ home });
});
afterAll(async () => {
  await gateway?.stop();
  await rm(home, { recursive: true, force: true });
});

interface Device {
  readonly storage: SecretStorage;
  readonly entries: Map<string, string>;
}

function newDevice(): Device {
  const entries = new Map<string, string>();
  return {
    entries,
    storage: {
      read: async (name) => entries.get(name),
      write: async (name, text) => void entries.set(name, text),
      erase: async (name) => void entries.delete(name),
    },
  };
}

async function killAndRestart(): Promise<void> {
  const ended = once(gateway.process, 'exit');
  gateway.process.kill('SIGKILL');
  await ended;
  // The last of two flags counts.
  gateway = await startServer({ home, args: ['--port', String(gateway.port)] });
}

/** Kills the gateway in the middle of the pairing, as a device's request is on its way or just after. */
async function pairAcrossAKill({ storage }: Device, invite: string): Promise<void> {
  const [inRequest, afterMs] = [1 + Math.floor(Math.random() * 2), Math.random() * LATEST_KILL_MS];
  let requests = 0;
  let restarted: Promise<void> | undefined;
  const kill = (): Promise<void> => (restarted ??= killAndRestart());
  const options = {
    crypto,
    storage,
    device: { name: `killed ${inRequest} after ${afterMs.toFixed(1)} ms`, platform: 'test' },
    fetch(url: string, init: RequestInit) {
      requests += 1;
      if (requests === inRequest) setTimeout(() => void kill(), afterMs);
      return fetch(url, init);
    },
  };
  const outcome = await codeOf(pair(invite, options));
  await kill();
  if (typeof outcome !== 'string') return;
  expect(['offline', 'refused', 'invite_over']).toContain(outcome);
  if (outcome === 'invite_over') return;
  // It is asked again for as long as the way to it is not there.
  await until(async () => {
    const again = await codeOf(pair(invite, options));
    return again !== 'offline' && again !== 'busy';
  });
}

/** What a device can do with its record. Home takes five handshakes in ten seconds from one address. */
async function statusOf(device: PairedDevice): Promise<number> {
  const client = connect(device, { crypto });
  onTestFinished(() => client.close());
  return until(async () => {
    const answer = await codeOf(client.fetch('/v1/models').then(({ status }) => status));
    return answer === 'busy' ? undefined : (answer as number);
  });
}

interface Listed {
  readonly id: string;
  readonly status: string;
}

test(
  'a pairing that "kill -9" interrupts comes to one end, and to the same on both sides',
  { timeout: 600_000 },
  async () => {
    const devices: Device[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const device = newDevice();
      devices.push(device);
      await pairAcrossAKill(device, await askForInvite(gateway));
    }

    const entries = devices.flatMap(({ entries: all }) => [...all]);
    expect(entries.filter(([name]) => !name.startsWith('device-'))).toEqual([]);
    const paired = entries.map(([, text]) => JSON.parse(text) as PairedDevice);
    expect(paired.length).toBeGreaterThan(0);
    const listed = JSON.parse((await runCli(['devices', '--json'], { SVC_HOME: home })).stdout) as Listed[];
    expect(Object.fromEntries(listed.map(({ id, status }) => [id, status]))).toEqual(
      Object.fromEntries(paired.map(({ deviceId }) => [deviceId, 'active'])),
    );
    for (const device of paired) expect(await statusOf(device)).toBe(200);
    const keys = JSON.parse((await runCli(['keys', 'list', '--json'], { SVC_HOME: home })).stdout) as object[];
    expect(keys).toHaveLength(paired.length);
    expect(await runCli(['audit', 'verify'], { SVC_HOME: home })).toMatchObject({ code: 0 });
  },
);
