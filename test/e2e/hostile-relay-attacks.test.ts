/**
 * What a relay that lies can do with what it recorded and kept back, with other homes, with streams of its own, and in
 * the middle of an answer: between a real gateway and the real SDK.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodeEnvelope } from '../../channel/envelope.ts';
import { HINT } from '../../channel/hint.ts';
import type { PairedDevice } from '../../clients/sdk/index.ts';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import { OP } from '../../relay/wire/op.ts';
import { overheard } from '../support/canary.ts';
import { newPairedDevice } from '../support/channel-server-here.ts';
import { HONEST, linkOf, type Link, type Misdeed } from '../support/hostile-relay.ts';
import { answering, ASKING, crossWire, greeted, hold, say, swapped, to } from '../support/misdeeds.ts';
import { allHeard, ask, calm, CANARY, countOf, startHome, startHostileWorld } from '../support/relay-home.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

const homes: string[] = [];
const services: ServiceHere[] = [];
let service: ServiceHere;
let device: PairedDevice;

async function newService(): Promise<ServiceHere> {
  const home = await temporaryHome();
  homes.push(home);
  const started = await startServiceHere(home);
  services.push(started);
  return started;
}

beforeAll(async () => {
  service = await newService();
  device = await newPairedDevice(service);
});
afterAll(async () => {
  await Promise.all(services.map((one) => one.stop()));
  await Promise.all(homes.map(removeHome));
});

/** A world with one home and one device that has its session already. */
async function settledHome() {
  const world = await startHostileWorld();
  const home = await startHome(world, service);
  const client = home.newClient(device);
  expect(await ask(client, 'POST', '/v1/small/first')).toBe('done');
  return { world, home, client, ...world };
}

describe('what was recorded', () => {
  test('of a request is not done again: not on its connection, not on another, not in another order', async () => {
    const { home, client, hostile } = await settledHome();
    expect(await ask(client, 'POST', '/v1/streamed/a')).toBe('done');
    const link = linkOf(hostile, 'gateway');
    const calls = hostile.heard.filter(({ op }) => op === OP.call);
    const replay = async (connectionTag: Uint8Array, asked: Uint8Array): Promise<Buffer | number> => {
      const stream = link.open(OP.call, connectionTag);
      stream.send(asked);
      stream.end();
      return stream.outcome;
    };
    const spent = Buffer.from(encodeEnvelope({ kind: 'hint', code: HINT.callNumber }));
    for (const { asked } of [...calls, ...calls.toReversed()])
      for (const tag of [new Uint8Array(8), Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)])
        expect(await replay(tag, Buffer.concat(asked))).toEqual(spent);
    expect(home.ran.map(({ path }) => path)).toEqual(['/v1/small/first', '/v1/streamed/a']);
    expect(await ask(client, 'POST', '/v1/small/b')).toBe('done');
  });

  test('of a request that it kept back is done once at most, however late it comes, and however often it was sent', async () => {
    const { home, client, hostile, time } = await settledHome();
    const held = hold({ ...ASKING, op: OP.call });
    hostile.misdeed = held.misdeed;
    expect(await ask(client, 'POST', '/v1/small/late')).toBe('unanswered');
    const beganMs = time.now();
    await until(() => time.now() - beganMs > 600_000);
    expect(countOf(home, '/v1/small/late')).toBe(0);
    held.release();
    expect(await ask(client, 'POST', '/v1/small/later')).toBe('done');
    expect(countOf(home, '/v1/small/late')).toBeLessThanOrEqual(1);
  });

  test('of a handshake makes sessions that nobody can use, and not without end', async () => {
    const { home, client, hostile } = await settledHome();
    const link = linkOf(hostile, 'gateway');
    const { asked } = hostile.heard.find(({ op }) => op === OP.session)!;
    for (let round = 0; round < 300; round++) {
      const stream = link.open(OP.session, Buffer.from(`tag ${round}`.padEnd(8)));
      stream.send(Buffer.concat(asked));
      stream.end();
      await stream.outcome;
    }
    expect(home.channelServer.counts().sessions).toBeLessThanOrEqual(64 + 4);
    expect(await ask(client, 'POST', '/v1/small/still')).toBe('done');
    expect(home.ran).toHaveLength(2);
    const another = home.newClient(device);
    await until(async () => (await ask(another, 'GET', '/v1/small/another')) === 'done');
  });

  test('of an answer is no answer to anything else', async () => {
    const { home, client, hostile } = await settledHome();
    const [greetedThen, answeredThen] = [OP.session, OP.call].map((op) =>
      Buffer.concat(hostile.heard.find((heard) => heard.op === op)!.answered),
    ) as [Buffer, Buffer];
    hostile.misdeed = answering(say(answeredThen));
    expect(await ask(client, 'POST', '/v1/small/a')).toBe('unanswered');
    hostile.misdeed = greeted(say(greetedThen));
    const another = home.newClient(device);
    expect(await ask(another, 'POST', '/v1/small/b')).toBe('wrong_gateway');
    expect(countOf(home, '/v1/small/b')).toBe(0);
    hostile.misdeed = HONEST;
    for (const one of [client, another]) expect(await ask(one, 'POST', '/v1/small/c')).toBe('done');
  });
});

test('a device that is led to another home finds that out before it has said anything', async () => {
  const world = await startHostileWorld();
  const home = await startHome(world, service);
  const otherService = await newService();
  await newPairedDevice(otherService);
  const other = await startHome(world, otherService);
  world.hostile.misdeed = crossWire(linkOf(world.hostile, 'gateway'), other.routingId);
  const client = home.newClient(device);
  expect(await ask(client, 'POST', '/v1/small/a')).toBe('refused');
  expect([home.ran.length, other.ran.length]).toEqual([0, 0]);
  world.hostile.misdeed = HONEST;
  linkOf(world.hostile, 'client').cut();
  expect(await ask(client, 'POST', '/v1/small/a')).toBe('done');
});

test('calls that it mixes up with each other keep to themselves', async () => {
  const { home, client, hostile } = await settledHome();
  hostile.misdeed = answering(swapped(false));
  const paths = Array.from({ length: 10 }, (_, at) => `/v1/${at % 2 === 0 ? 'streamed' : 'small'}/${at}`);
  const outcomes = await Promise.all(paths.map((path) => ask(client, 'POST', path)));
  expect(outcomes).toEqual(paths.map(() => 'done'));
  expect(paths.map((path) => countOf(home, path))).toEqual(paths.map(() => 1));
});

test('streams that lead nowhere are refused by the gateway itself, and streams without end are bounded', async () => {
  const { client, hostile } = await settledHome();
  const link = linkOf(hostile, 'gateway');
  const tag = new Uint8Array(8);
  for (const op of [0x00, 0x02, 0x04, 0x12, 0x20, 0x21, 0x22, 0x23, 0x7f, 0xff])
    expect(await link.open(op, tag).outcome).toBe(RELAY_CODE.notAllowed);
  const storm = Array.from({ length: 2000 }, () => link.open(OP.call, tag));
  const outcomes = await Promise.all(storm.slice(128).map(({ outcome }) => outcome));
  expect(new Set(outcomes)).toEqual(new Set([RELAY_CODE.tooMany]));
  // Nothing comes over them, so they end by themselves.
  expect(new Set(await Promise.all(storm.slice(0, 128).map(({ outcome }) => outcome)))).toEqual(
    new Set([RELAY_CODE.timeout]),
  );
  expect(await ask(client, 'POST', '/v1/small/after')).toBe('done');
});

describe('in the middle of an answer', () => {
  /** Does it when so many frames of answers have come through. */
  function after(count: number, run: (link: Link) => void): Misdeed {
    let seen = 0;
    return answering((passing) => {
      seen += 1;
      if (seen === count) run(passing.link);
      return [passing.frame];
    });
  }

  test('the relay is killed: the device picks the rest up over the next one', async () => {
    const { home, client, hostile, world } = await settledHome();
    hostile.misdeed = after(5, () => void world.killRelay());
    expect(await ask(client, 'POST', '/v1/streamed/killed')).toBe('done');
    expect(countOf(home, '/v1/streamed/killed')).toBe(1);
    await calm(world, home);
  });

  test('everything falls silent, and nobody is told: both notice, and the rest is picked up', async () => {
    const { home, client, hostile, time } = await settledHome();
    const halfOpen = new Set(hostile.links);
    const silent: Misdeed = ({ link, frame }) => (halfOpen.has(link) ? [] : [frame]);
    hostile.misdeed = after(5, () => (hostile.misdeed = silent));
    const beganMs = time.now();
    expect(await ask(client, 'POST', '/v1/streamed/silent')).toBe('done');
    expect(countOf(home, '/v1/streamed/silent')).toBe(1);
    expect(time.now() - beganMs).toBeGreaterThan(40_000);
  });

  test('the gateway is cut off and comes back', async () => {
    const { home, client, hostile } = await settledHome();
    hostile.misdeed = after(5, () => linkOf(hostile, 'gateway').cut());
    expect(await ask(client, 'POST', '/v1/streamed/cut')).toBe('done');
    expect(countOf(home, '/v1/streamed/cut')).toBe(1);
  });

  test('nothing passes any more: it ends as truncated, and the gateway lets go of it', async () => {
    const { home, client, hostile, world } = await settledHome();
    hostile.misdeed = after(5, () => (hostile.misdeed = to({ role: 'client' }, () => [])));
    expect(await ask(client, 'POST', '/v1/streamed/lost')).toBe('truncated');
    await calm(world, home);
    hostile.misdeed = HONEST;
    expect(await ask(client, 'POST', '/v1/small/after')).toBe('done');
  });
});

test('of an answer of which nobody takes a byte the gateway lets go, though nobody says that the stream is over', async () => {
  const { home, client, hostile, world } = await settledHome();
  // The request arrives; of the answer nothing is heard, and the gateway is not told that the device has gone.
  hostile.misdeed = ({ link, from, frame }) => {
    const isToGateway = link.role === 'gateway' && from === 'relay';
    if (isToGateway) return frame.type === 'window' || frame.type === 'reset' ? [] : [frame];
    return link.role === 'client' && from === 'relay' && frame.type === 'data' ? [] : [frame];
  };
  expect(await ask(client, 'POST', '/v1/large/stalled')).toBe('unanswered');
  client.close();
  await calm(world, home);
});

test('a device is paired through it, and only with its own gateway', async () => {
  const world = await startHostileWorld();
  const home = await startHome(world, service);
  const another = await home.pair();
  expect(await ask(home.newClient(another), 'POST', '/v1/small/paired')).toBe('done');
  const secrets = new Map([
    ['canary', Buffer.from(CANARY)],
    ['psk', Buffer.from(another.psk, 'base64url')],
    ['device key', Buffer.from(another.deviceKey, 'base64url')],
  ]);
  expect(overheard(allHeard(world.hostile), secrets)).toEqual([]);
});
