/** What home says of where it is goes into the record of the device that asked, and into no other. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CommandContext } from '../../cli/command.ts';
import {
  forgetGateway,
  keepMovedDevice,
  listPairedGateways,
  loadPairedDevice,
  openPairingStorage,
} from '../../cli/paired-gateways.ts';
import { deviceEntry } from '../../clients/sdk/index.ts';
import { keepDevice } from '../support/paired-home.ts';
import { silentTerminal } from '../support/silent-terminal.ts';

let context: CommandContext;
beforeEach(async () => {
  const { signal } = new AbortController();
  const home = await mkdtemp(join(tmpdir(), 'postern-moved-'));
  const environment = { SVC_IDENTITY_STORE: 'vault' };
  context = { home, environment, terminal: silentTerminal, stop: signal, stopNow: signal };
});
afterEach(() => rm(context.home, { recursive: true, force: true }));

const urls = ['http://10.0.0.9:1'];

test('is kept', async () => {
  const device = await keepDevice(context.home, 'home');
  await keepMovedDevice({ ...device, urls }, context);
  const [gateway] = await listPairedGateways(context.home);
  expect(await loadPairedDevice(gateway!, context)).toEqual({ ...device, urls });
});

test('takes no other device’s place: this machine was paired anew meanwhile', async () => {
  const device = await keepDevice(context.home, 'home');
  const anew = { ...device, deviceKey: Buffer.alloc(32, 1).toString('base64url') };
  const { storage } = await openPairingStorage(context, Date.now());
  await storage.write(deviceEntry(device.gatewayId), JSON.stringify(anew));
  await keepMovedDevice({ ...device, urls }, context);
  const [gateway] = await listPairedGateways(context.home);
  expect(await loadPairedDevice(gateway!, context)).toEqual(anew);
});

test('brings no keys back that were forgotten meanwhile', async () => {
  const device = await keepDevice(context.home, 'home');
  const [gateway] = await listPairedGateways(context.home);
  await forgetGateway(gateway!, context);
  await keepMovedDevice({ ...device, urls }, context);
  await expect(loadPairedDevice(gateway!, context)).rejects.toThrow('are gone');
  expect(await listPairedGateways(context.home)).toEqual([]);
});
