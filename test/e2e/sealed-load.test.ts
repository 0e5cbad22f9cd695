/** Sessions that end while calls come and go: by age, by their numbers, by the owner. No call is lost over it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { connect, type PairedDevice } from '../../clients/sdk/index.ts';
import type { InnerRequest } from '../../gateway/sealed/inner-request.ts';
import { newPairedDevice, openDoorHere, streamOf, type DoorHere } from '../support/channel-server-here.ts';
import { codeOf } from '../support/sealed-client.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

const MINUTE_MS = 60_000;
const CALLS = 400;
/** At once, of each device; a session has room for 32. */
const AT_ONCE = 8;

let home: string;
let service: ServiceHere;
let devices: readonly [PairedDevice, PairedDevice, PairedDevice];

beforeAll(async () => {
  home = await temporaryHome();
  service = await startServiceHere(home);
  devices = [await newPairedDevice(service), await newPairedDevice(service), await newPairedDevice(service)];
});
afterAll(async () => {
  await service?.stop();
  await removeHome(home);
});

/** Answers with the path, whole or as a stream. */
function echo({ path }: InnerRequest) {
  if (path.startsWith('/stream')) return streamOf([path, ' and', ' more']);
  const body = Buffer.from(path);
  return {
    status: 200,
    headers: [],
    bodyBytes: body.length,
    body: (async function* () {
      yield body;
    })(),
  };
}

/** Makes calls until it has made all of them. @returns what came of each: its text, or a code */
async function load(here: DoorHere, device: PairedDevice, name: string): Promise<readonly unknown[]> {
  const { now, setTimer } = here.time;
  const client = connect(device, { now, setTimer, crypto: gatewayCrypto('node'), transports: [here.newTransport()] });
  const outcomes: unknown[] = [];
  const caller = async (from: number): Promise<void> => {
    for (let at = from; at < CALLS; at += AT_ONCE) {
      const path = `/${at % 3 === 0 ? 'stream' : 'whole'}/${name}/${at}`;
      const asked = client.fetch(path, at % 2 === 0 ? { method: 'POST', body: '{}' } : {});
      const outcome = await codeOf(asked.then((response) => response.text()));
      outcomes.push(outcome === `${path}${at % 3 === 0 ? ' and more' : ''}` ? 'right' : outcome);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, from) => caller(from)));
  client.close();
  return outcomes;
}

test('sessions grow old and are made anew, a device is revoked, and every call has its answer or its reason', async () => {
  const here = await openDoorHere(service, echo);
  const [first, second, third] = devices;
  const state = { isOver: false, turns: 0 };
  const all = Promise.all([load(here, first, 'a'), load(here, second, 'b'), load(here, third, 'c')]);
  void all.finally(() => (state.isOver = true)).catch(() => undefined);
  let ended: Promise<void> | undefined;
  await until(() => {
    state.turns += 1;
    // Many ticks, and now and then a long pause: an hour ends a session at the device, half an idle one at both ends.
    here.time.advance(50);
    if (state.turns % 20 === 0) here.time.sleep(17 * MINUTE_MS);
    if (here.ran.length > CALLS && ended === undefined) ended = revoke(here, third);
    return state.isOver;
  });
  const [a, b, c] = await all;
  await ended;
  expect(new Set([...a, ...b])).toEqual(new Set(['right']));
  expect([a.length, b.length, c.length]).toEqual([CALLS, CALLS, CALLS]);
  // What runs then ends as revoked; what comes after is not let in, and soon not even heard.
  expect(c.filter((outcome) => outcome !== 'right').length).toBeGreaterThan(0);
  const reasons = new Set(['right', 'revoked', 'refused', 'busy', 'unanswered']);
  expect(c.filter((outcome) => !reasons.has(String(outcome)))).toEqual([]);
  expect(here.handshakes).toBeGreaterThan(6);
  const ids = here.ran.map(({ path }) => path).filter((path) => /\d*[02468]$/u.test(path));
  expect(new Set(ids).size).toBe(ids.length);
  await until(() => here.channelServer.counts().calls === 0 || (here.time.advance(1000), undefined));
});

async function revoke({ channelServer }: DoorHere, { deviceId }: PairedDevice): Promise<void> {
  const { devices: registry } = await service.running.identity.openPairings();
  const { kid } = registry.find(deviceId)!;
  await registry.revoke(deviceId);
  await channelServer.revoke([kid]);
}
