/**
 * What a relay can know of what it passes on, from the pairing to the last answer: whatever is on its wires, in its log
 * and in its memory, words of those who use it are not there. The relay speaks plain WebSocket here, which is the most
 * that a listener could ever see.
 */
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findInviteCode } from '../../identity/invite-code.ts';
import { overheard } from '../support/canary.ts';
import { dumpMemory } from '../support/core-dump.ts';
import { askForInviteOn } from '../support/invites.ts';
import { createRelayedNetwork, fetchOn, type RelayedNetwork } from '../support/network.ts';
import { beginOn } from '../support/on-machine.ts';
import { answered, askClientsOn, bytesOf, planted, sayAllOn } from '../support/planted.ts';
import { startRelayProcess, type RelayProcess } from '../support/relay-process.ts';
import { coreDumps, has, networkNamespaces, packetCapture } from '../support/requirements.ts';
import { cliPath, startServer, type TestServer } from '../support/server.ts';
import { unmasked } from '../support/unmask.ts';
import { until } from '../support/wait.ts';
import { listenOnWire, type WireCapture } from '../support/wire-capture.ts';

const foundation = new URL('../../models/foundation/foundation.gguf', import.meta.url);

/** Said in the clear, to see that it would be found. */
const control = { clear: 'ControlInTheClear', hex: 'ControlInHexadecimal', base64: 'ControlInBase64' };
const LAST = 'ControlAtTheEnd';

const disguised = [
  control.clear,
  Buffer.from(control.hex).toString('hex'),
  Buffer.from(`x${control.base64}y`).toString('base64'),
].join();

/** What was heard, and what clients had disguised of it. */
const disclosed = (heard: readonly Buffer[]) => [...heard, ...heard.map(unmasked).filter(({ length }) => length > 0)];

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
      relay = await startRelayProcess(0, ['--metrics', `${address}:9464`], {
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

    const onLaptop = (args: readonly string[], input = '') =>
      beginOn(network.guest, [cliPath, ...args], { home: join(folder, 'laptop'), input }).ended;
    const atHome = (...args: string[]) => beginOn(network.home, [cliPath, ...args], { home: gateway.home }).ended;

    test('knows no word of it: not by wire, by log or by memory', async () => {
      const told = await askClientsOn(network.guest, laptop.url);
      expect(told).toMatchObject({
        'openai text': ['The capital of France is Paris.', null],
        'anthropic stream tool': [['get_weather', { city: 'Paris' }]],
      });
      const status = await sayAllOn(network.guest, laptop.url);
      expect(status).toBeGreaterThanOrEqual(400);
      const bearerKey = (await onLaptop(['gateways', 'key'])).stdout.trim();
      expect(bearerKey).toMatch(/^svc-v1\./);

      const memory = await dumpMemory(relay.process.pid!, folder);
      const url = relay.origin.replace('ws:', 'http:');
      for (const machine of [network.home, network.guest]) await fetchOn(machine, `${url}/${disguised}/${LAST}`);
      const [home, laptops] = await Promise.all(captures.map((capture) => capture.end(LAST)));
      const places = { home: disclosed(home!), laptop: disclosed(laptops!), memory: [memory] };
      // REGISTER, the first that a gateway says.
      expect(places.home.some(([first]) => first === 2)).toBe(true);
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
      expect(log.toString()).toMatch(/: gateway [a-z2-7]{4}$/m);
      expect(overheard([log], bytesOf(secrets))).toEqual([]);
      const { stdout } = await atHome('relay', 'status', '--json');
      const [{ routing_id: routingId }] = JSON.parse(stdout) as [{ routing_id: string }];
      // What it does know is found where it is kept.
      expect(memory.includes(routingId)).toBe(true);
      // The log has four characters of it, and no more.
      expect(log.includes(routingId.slice(0, 4))).toBe(true);
      expect(log.includes(routingId.slice(0, 5))).toBe(false);
    });
  },
);
