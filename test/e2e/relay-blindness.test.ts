/**
 * What a relay can know of what it passes on, from the pairing to the last answer: whatever is on its wires, in its log
 * and in its memory, words of those who use it are not there. The relay speaks plain WebSocket here, which is the most
 * that a listener could ever see.
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
import { dumpMemory } from '../support/core-dump.ts';
import { askForInviteOn } from '../support/invites.ts';
import { createRelayedNetwork, fetchOn, type RelayedNetwork } from '../support/network.ts';
import { startRelayProcess, type RelayProcess } from '../support/relay-process.ts';
import { runProgram } from '../support/requests.ts';
import { coreDumps, has, networkNamespaces, packetCapture } from '../support/requirements.ts';
import { cliPath, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';
import { listenOnWire, type WireCapture } from '../support/wire-capture.ts';
import type { WireClientsInput } from '../support/wire-clients-program.ts';

const foundation = new URL('../../models/foundation/foundation.gguf', import.meta.url);

/** Planted, each where it says. */
const planted = {
  path: 'CanaryInThePath',
  query: 'CanaryInTheQuery',
  header: 'canary-in-a-header',
  agent: 'CanaryOfAnAgent',
  idempotencyKey: 'CanaryOfAnAction',
  body: 'CanaryInTheBody',
  clientKey: 'CanaryOfAClientsKey',
  device: 'CanaryOfADevice',
  model: 'canary-of-a-model',
};
/** Never asked for, and in every answer of their kind. */
const answered = {
  stream: 'chat.completion.chunk',
  anthropic: 'content_block_delta',
  text: 'The capital of France is',
  tool: '"get_weather"',
};
/** Said in the clear, to see that it would be found. */
const control = { clear: 'ControlInTheClear', hex: 'ControlInHexadecimal', base64: 'ControlInBase64' };
const LAST = 'ControlAtTheEnd';

const bytesOf = (secrets: Readonly<Record<string, string | Uint8Array>>) =>
  new Map(Object.entries(secrets).map(([name, secret]) => [name, Buffer.from(secret)]));
const disguised = [
  control.clear,
  Buffer.from(control.hex).toString('hex'),
  Buffer.from(`x${control.base64}y`).toString('base64'),
].join();

describe.runIf([networkNamespaces, packetCapture, coreDumps].every(has))(
  'a relay between a gateway and a laptop',
  () => {
    let network: RelayedNetwork;
    let folder: string;
    let relay: RelayProcess;
    let gateway: TestServer;
    let laptop: TestServer;
    let captures: readonly WireCapture[];
    let invite: string;

    beforeAll(async () => {
      network = await createRelayedNetwork();
      folder = await mkdtemp(join(tmpdir(), 'postern-blind-'));
      await copyFile(foundation, join(folder, `${planted.model}.gguf`));
      const { address, within, devices } = network.relay;
      relay = await startRelayProcess(0, ['--open-metrics'], {
        host: address,
        within,
        environment: { CONTROL: disguised },
      });
      captures = await Promise.all(devices.map((device) => listenOnWire({ ...network.relay, device })));
      gateway = await startServer({ within: network.home.within, args: ['--relay', relay.origin], modelsDir: folder });
      await until(() => gateway.log().includes(`relay ${relay.origin}: connected`));
      invite = await askForInviteOn(network.home, gateway, { bearer: true });
      const paired = await onLaptop(['pair', '-', '--name', planted.device], invite);
      expect(paired, paired.stderr).toMatchObject({ code: 0 });
      laptop = await startServer({
        home: join(folder, 'laptop'),
        within: network.guest.within,
        program: [cliPath, 'connect'],
      });
      await until(() => laptop.log().includes(relay.origin));
    });
    afterAll(async () => {
      await laptop?.stop();
      await gateway?.stop();
      await relay?.end('SIGKILL');
      await network?.remove();
      await rm(folder, { recursive: true, force: true });
    });

    async function onLaptop(args: readonly string[], input = '') {
      const [command, ...rest] = [...network.guest.within, process.execPath, cliPath, ...args];
      const child = spawn(command!, rest, {
        stdio: 'pipe',
        env: { ...process.env, SVC_HOME: join(folder, 'laptop'), SVC_IDENTITY_STORE: 'vault' },
      });
      child.stdin.end(input);
      const [stdout, stderr, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'close'),
      ]);
      return { code: code as number | null, stdout, stderr };
    }

    test('knows no word of it: not by wire, by log or by memory', async () => {
      const told = await runProgram<Record<string, unknown>>(network.guest.within, 'wire-clients-program', {
        url: laptop.url,
        model: planted.model,
        word: planted.body,
        key: planted.clientKey,
      } satisfies WireClientsInput);
      expect(told).toMatchObject({
        'openai text': ['The capital of France is Paris.', null],
        'anthropic stream tool': [['get_weather', { city: 'Paris' }]],
      });
      const { status } = await fetchOn(network.guest, `${laptop.url}/v1/models/${planted.path}?q=${planted.query}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'anthropic-beta': planted.header,
          'x-service-agent-id': planted.agent,
          'idempotency-key': planted.idempotencyKey,
          'x-api-key': planted.clientKey,
        },
        body: JSON.stringify({ model: planted.model, prompt: planted.body }),
      });
      expect(status).toBeGreaterThanOrEqual(400);
      const bearerKey = (await onLaptop(['gateways', 'key'])).stdout.trim();
      expect(bearerKey).toMatch(/^svc-v1\./);

      const memory = await dumpMemory(relay.process.pid!, folder);
      const url = relay.origin.replace('ws:', 'http:');
      for (const machine of [network.home, network.guest])
        await fetchOn(machine, `${url}/${disguised}/${LAST}`);
      const heard = (await Promise.all(captures.map((capture) => capture.end(LAST)))).map((flows) => flows.flat());

      const places = { home: heard[0]!, laptop: heard[1]!, memory: [memory] };
      const secrets = {
        ...planted,
        ...answered,
        invite: invite.slice('SVC:'.length),
        inviteSecret: findInviteCode(invite)!.secret,
        bearerKey,
        bearerSignature: Buffer.from(bearerKey.split('.')[2]!, 'hex'),
        anyAccessKey: 'svc-v1.',
      };
      for (const [place, bytes] of Object.entries(places)) {
        expect(overheard(bytes, bytesOf(control)), place).toEqual(Object.keys(control));
        expect(overheard(bytes, bytesOf(secrets)), place).toEqual([]);
      }
      const log = Buffer.from(relay.log());
      expect(log.toString()).toMatch(/^gateway [a-z2-7]{4}$/m);
      expect(overheard([log], bytesOf(secrets))).toEqual([]);
      // Of whose route it is, four characters and no more.
      const { stdout } = await onHome(['relay', 'status', '--json']);
      const [{ routing_id: routingId }] = JSON.parse(stdout) as [{ routing_id: string }];
      expect(log.includes(routingId.slice(0, 4))).toBe(true);
      expect(log.includes(routingId.slice(0, 5))).toBe(false);
    });

    async function onHome(args: readonly string[]) {
      const [command, ...rest] = [...network.home.within, process.execPath, cliPath, ...args];
      const child = spawn(command!, rest, { env: { ...process.env, SVC_HOME: gateway.home } });
      return { stdout: await text(child.stdout) };
    }
  },
);
