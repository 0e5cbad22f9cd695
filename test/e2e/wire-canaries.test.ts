/**
 * What somebody learns who listens on the network between a gateway and a second laptop, from the pairing to the last
 * answer: nothing of what is said, whose names they are and what keys there are.
 */
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findInviteCode } from '../../identity/invite-code.ts';
import { overheard } from '../support/canary.ts';
import { askForInviteOn } from '../support/invites.ts';
import { createNetwork, fetchOn, type TestNetwork } from '../support/network.ts';
import { beginOn } from '../support/on-machine.ts';
import { answered, askClientsOn, bytesOf, planted, sayAllOn } from '../support/planted.ts';
import { has, networkNamespaces, packetCapture } from '../support/requirements.ts';
import { cliPath, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';
import { listenOnWire, type WireCapture } from '../support/wire-capture.ts';

const foundation = new URL('../../models/foundation/foundation.gguf', import.meta.url);

/** Said in the clear, to see that it would be found, in each form. */
const control = {
  clear: 'ControlInTheClear',
  hex: 'ControlInHexadecimal',
  'base64, 0 before': 'ControlInBase64Zero',
  'base64, 1 before': 'ControlInBase64One',
  'base64, 2 before': 'ControlInBase64Two',
  base64url: 'ÿControl÷InBase64url?>',
};
const LAST = 'ControlAtTheEnd';

const base64Of = (word: string) => Buffer.from(word).toString('base64');

describe.runIf([networkNamespaces, packetCapture].every(has))('the network between a gateway and a laptop', () => {
  let network: TestNetwork;
  let models: string;
  let gateway: TestServer;
  let laptopHome: string;
  let laptop: TestServer;
  let capture: WireCapture;
  let invite: string;

  beforeAll(async () => {
    network = await createNetwork();
    models = await mkdtemp(join(tmpdir(), 'postern-canary-models-'));
    await copyFile(foundation, join(models, `${planted.model}.gguf`));
    gateway = await startServer({ within: network.home.within, args: ['--expose'], modelsDir: models });
    laptopHome = await mkdtemp(join(tmpdir(), 'postern-laptop-'));
    capture = await listenOnWire(network.guest);
    invite = await askForInviteOn(network.home, gateway, { bearer: true });
    const paired = await onLaptopCli(['pair', '-', '--name', planted.device], invite);
    expect(paired, paired.stderr).toMatchObject({ code: 0 });
    laptop = await startServer({ home: laptopHome, within: network.guest.within, program: [cliPath, 'connect'] });
    await until(() => laptop.log().includes('Connected to home.'));
  });
  afterAll(async () => {
    await laptop?.stop();
    await gateway?.stop();
    await network?.remove();
    for (const folder of [models, laptopHome]) await rm(folder, { recursive: true, force: true });
  });

  const onLaptopCli = (args: readonly string[], input = '') =>
    beginOn(network.guest, [cliPath, ...args], { home: laptopHome, input }).ended;

  test('carries for official clients what they are told at home, streams and tool calls included', async () => {
    const told = await askClientsOn(network.guest, laptop.url);
    expect(told).toEqual(await askClientsOn(network.home, gateway.url));
    expect(told).toMatchObject({
      'openai text': ['The capital of France is Paris.', null],
      'anthropic stream tool': [['get_weather', { city: 'Paris' }]],
      'ollama stream tool': ['', [{ name: 'get_weather', arguments: { city: 'Paris' } }]],
    });
  });

  test('shows none of it to whoever listens there', async () => {
    const status = await sayAllOn(network.guest, laptop.url);
    expect(status).toBeGreaterThanOrEqual(400);
    const bearerKey = (await onLaptopCli(['gateways', 'key'])).stdout.trim();
    expect(bearerKey).toMatch(/^svc-v1\./);

    await fetchOn(network.guest, `http://${network.home.address}:${gateway.port}/${control.clear}`, {
      method: 'POST',
      headers: { 'x-control': Buffer.from(control.hex).toString('hex') },
      body: [
        base64Of(control['base64, 0 before']),
        base64Of(`x${control['base64, 1 before']}y`),
        base64Of(`xx${control['base64, 2 before']}y`),
        Buffer.from(`x${control.base64url}`).toString('base64url'),
        LAST,
      ].join(),
    });
    const heard = await capture.end(LAST);

    expect(overheard(heard, bytesOf(control))).toEqual(Object.keys(control));
    expect(overheard(heard, bytesOf(planted))).toEqual([]);
    expect(overheard(heard, bytesOf(answered))).toEqual([]);
    const keys = {
      invite: invite.slice('SVC:'.length),
      inviteSecret: findInviteCode(invite)!.secret,
      bearerKey,
      bearerSignature: Buffer.from(bearerKey.split('.')[2]!, 'hex'),
      // The device's grant, which the laptop does not even keep, begins so.
      anyAccessKey: 'svc-v1.',
    };
    expect(overheard(heard, bytesOf(keys))).toEqual([]);
  });
});
