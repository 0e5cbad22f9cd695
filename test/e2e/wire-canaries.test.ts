/**
 * What somebody learns who listens on the network between a gateway and a second laptop, from the pairing to the last
 * answer: nothing of what is said, whose names they are and what keys there are.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findInviteCode } from '../../identity/invite-code.ts';
import { overheard } from '../support/canary.ts';
import { askForInviteOn } from '../support/invites.ts';
import { createNetwork, fetchOn, type Machine, type TestNetwork } from '../support/network.ts';
import { runProgram } from '../support/requests.ts';
import { has, networkNamespaces, packetCapture } from '../support/requirements.ts';
import { cliPath, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';
import { listenOnWire, type WireCapture } from '../support/wire-capture.ts';
import type { WireClientsInput } from '../support/wire-clients-program.ts';

const foundation = new URL('../../models/foundation/foundation.gguf', import.meta.url);

/** Planted, each where it says. */
const planted = {
  path: 'CanaryInThePath',
  query: 'CanaryInTheQuery',
  beta: 'canary-in-a-header',
  agent: 'CanaryOfAnAgent',
  idempotencyKey: 'CanaryOfAnAction',
  body: 'CanaryInTheBody',
  clientKey: 'CanaryOfAClientsKey',
  device: 'CanaryOfADevice',
  model: 'canary-of-a-model',
};
/** Never asked for, and in every answer of their kind. */
const answered = {
  chat: 'chat.completion',
  stream: 'chat.completion.chunk',
  anthropic: 'content_block_delta',
  text: 'The capital of France is',
  tool: '"get_weather"',
};
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

const bytesOf = (secrets: Readonly<Record<string, string | Uint8Array>>) =>
  new Map(Object.entries(secrets).map(([name, secret]) => [name, Buffer.from(secret)]));
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
    await until(() => laptop.log().includes('Home is reached.'));
  });
  afterAll(async () => {
    await laptop?.stop();
    await gateway?.stop();
    await network?.remove();
    for (const folder of [models, laptopHome]) await rm(folder, { recursive: true, force: true });
  });

  async function onLaptopCli(args: readonly string[], input = '') {
    const [command, ...rest] = [...network.guest.within, process.execPath, cliPath, ...args];
    const child = spawn(command!, rest, {
      stdio: 'pipe',
      env: { ...process.env, SVC_HOME: laptopHome, SVC_IDENTITY_STORE: 'vault' },
    });
    child.stdin.end(input);
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { code: code as number | null, stdout, stderr };
  }
  const askOn = ({ within }: Machine, url: string) =>
    runProgram<Record<string, unknown>>(within, 'wire-clients-program', {
      url,
      model: planted.model,
      word: planted.body,
      key: planted.clientKey,
    } satisfies WireClientsInput);

  test('carries for official clients what they are told at home, streams and tool calls included', async () => {
    const told = await askOn(network.guest, laptop.url);
    expect(told).toEqual(await askOn(network.home, gateway.url));
    expect(told).toMatchObject({
      'openai text': ['The capital of France is Paris.', null],
      'anthropic stream tool': [['get_weather', { city: 'Paris' }]],
      'ollama stream tool': ['', [{ name: 'get_weather', arguments: { city: 'Paris' } }]],
    });
  });

  test('shows none of it to whoever listens there', async () => {
    const { status } = await fetchOn(network.guest, `${laptop.url}/v1/models/${planted.path}?q=${planted.query}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'anthropic-beta': planted.beta,
        'x-service-agent-id': planted.agent,
        'idempotency-key': planted.idempotencyKey,
        'x-api-key': planted.clientKey,
      },
      body: JSON.stringify({ model: planted.model, prompt: planted.body }),
    });
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
