/**
 * What a lying relay achieves with a tunnel and with those who join, below the sealed channel. It also shows that the
 * double does what it is told to, so that a test that uses it does not pass because nothing happened.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import { OP } from '../../relay/wire/op.ts';
import {
  hex,
  HONEST,
  startHostileRelay,
  type HeardStream,
  type HostileRelay,
  type Link,
} from '../support/hostile-relay.ts';
import {
  ANSWERING,
  ASKING,
  crossWire,
  drop,
  flip,
  hold,
  lie,
  swapped,
  times,
  to,
  truncate,
  twice,
} from '../support/misdeeds.ts';
import {
  collect,
  connectedTunnel,
  DEVICE_TAG,
  join,
  rawPeer,
  startTestRelay,
  startTestTunnel,
  type TestRelay,
  type TestTunnel,
} from '../support/relay-here.ts';
import { until } from '../support/wait.ts';

const toEnd: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of toEnd.splice(0).toReversed()) await end();
});

function ended<Thing extends { close(): unknown }>(thing: Thing): Thing {
  toEnd.push(() => thing.close());
  return thing;
}

let hostile: HostileRelay;
let relay: TestRelay;

beforeEach(async () => {
  hostile = ended(await startHostileRelay());
  relay = ended(await startTestRelay({ bytesPerSecond: 0 }, { origin: hostile.url }));
  hostile.behind = `ws://127.0.0.1:${relay.port}`;
});

const tunnelHere = async (): Promise<TestTunnel> => ended(await connectedTunnel(hostile.url));

/** What the gateway makes of bytes: the same. @returns the answer, or the code that it ended with */
async function ask(tunnel: TestTunnel, ...pieces: readonly Uint8Array[]): Promise<Buffer | number> {
  const joined = await join(hostile.url, tunnel.key.routingId);
  try {
    const stream = joined.open(OP.call);
    const answer = collect(stream.answer);
    answer.catch(() => undefined);
    for (const piece of pieces) await stream.write(piece);
    stream.end();
    return await answer;
  } catch (error) {
    return (error as { code: number }).code;
  } finally {
    joined.close();
  }
}

const gatewayLink = (): Link => [...hostile.links].find(({ role }) => role === 'gateway')!;
const [ONE, TWO, THREE] = [Buffer.from('one'), Buffer.from('two'), Buffer.from('three')];

test('as long as it does nothing, all that comes through it is what was sent', async () => {
  const tunnel = await tunnelHere();
  const large = Buffer.alloc(1_000_000, 'large');
  const answer = await ask(tunnel, large);
  expect(hostile.heard.map(({ op }) => op)).toEqual([OP.call]);
  const [heard] = hostile.heard as [HeardStream];
  for (const bytes of [answer as Buffer, Buffer.concat(heard.asked), Buffer.concat(heard.answered)])
    expect(bytes.equals(large)).toBe(true);
  expect(gatewayLink().tags.map(hex)).toContain(hex(DEVICE_TAG));
});

describe('with the bytes of a stream it can', () => {
  test.each([
    ['lose some', times(1, ASKING, drop), Buffer.concat([TWO, THREE])],
    ['repeat some', times(1, ASKING, twice), Buffer.concat([ONE, ONE, TWO, THREE])],
    ['change a bit', to(ASKING, flip(4)), Buffer.from('onetvothree')],
    ['say that they are all', to(ASKING, truncate(4)), Buffer.from('onet')],
    ['change their order', to(ASKING, swapped(true)), Buffer.concat([TWO, ONE, THREE])],
  ])('%s', async (_, misdeed, comesOut) => {
    const tunnel = await tunnelHere();
    hostile.misdeed = misdeed;
    expect(await ask(tunnel, ONE, TWO, THREE)).toEqual(comesOut);
    hostile.misdeed = HONEST;
    expect(await ask(tunnel, ONE)).toEqual(ONE);
  });

  test('keep them, as long as it likes', async () => {
    const tunnel = await tunnelHere();
    const held = hold(ANSWERING);
    hostile.misdeed = held.misdeed;
    const answer = ask(tunnel, ONE);
    await until(() => held.held() === 2);
    held.release();
    expect(await answer).toEqual(ONE);
  });

  test('send more than was granted: that stream ends, and no other', async () => {
    const tunnel = await tunnelHere();
    const joined = ended(await join(hostile.url, tunnel.key.routingId));
    const other = joined.open(OP.call);
    const one = joined.open(OP.call);
    const client = [...hostile.links].find(({ role }) => role === 'client')!;
    const bytes = new Uint8Array(32_768);
    const failure = collect(one.answer).catch((error: unknown) => error);
    for (let sent = 0; sent <= 262_144; sent += bytes.length)
      client.toPeer({ type: 'data', stream: 2, bytes, isEnd: false });
    // It was not read meanwhile, so nothing was granted again.
    expect(await failure).toMatchObject({ code: RELAY_CODE.flow });
    await other.write(ONE);
    other.end();
    expect(await collect(other.answer)).toEqual(ONE);
  });
});

test('a client may be led to another gateway, which lets it in by a tag of its own', async () => {
  const [one, two] = [await tunnelHere(), await tunnelHere()];
  const other = [...hostile.links].filter(({ role }) => role === 'gateway')[1]!;
  hostile.misdeed = crossWire(other, two.key.routingId);
  expect(await ask(one, ONE)).toEqual(ONE);
  const { bytesIn } = one.state();
  await ask(one, Buffer.alloc(100_000));
  expect(one.state().bytesIn - bytesIn).toBeLessThan(1000);
});

describe('a stream that it opens itself', () => {
  test('gets to the gateway, and the answer back', async () => {
    const tunnel = await tunnelHere();
    const stream = gatewayLink().open(OP.call, new Uint8Array(8));
    stream.send(ONE);
    stream.end();
    expect(await stream.outcome).toEqual(ONE);
    expect(await ask(tunnel, TWO)).toEqual(TWO);
  });

  test('and a thousand more are refused when there are too many; those that there are go on', async () => {
    const tunnel = await tunnelHere();
    const link = gatewayLink();
    const streams = Array.from({ length: 1000 }, () => link.open(OP.call, new Uint8Array(8)));
    const refused = await Promise.all(streams.slice(128).map(({ outcome }) => outcome));
    expect(new Set(refused)).toEqual(new Set([RELAY_CODE.tooMany]));
    for (const stream of streams.slice(0, 128)) {
      stream.send(ONE);
      stream.end();
      expect(await stream.outcome).toEqual(ONE);
    }
    expect(await ask(tunnel, TWO)).toEqual(TWO);
  });
});

describe('a registration that was recorded', () => {
  async function recorded(): Promise<Buffer> {
    await tunnelHere();
    return hostile.messages.find((message) => message[0] === 0x02)!;
  }

  test('is worth nothing on another connection to the same relay', async () => {
    const registration = await recorded();
    const thief = await rawPeer(hostile.behind!);
    await thief.frame('hello');
    thief.sendBytes(registration);
    expect((await thief.frame('error')).code).toBe(RELAY_CODE.notAllowed);
  });

  test('is worth nothing at another relay, though it was made for the nonce of that one', async () => {
    const other = ended(await startTestRelay());
    const thief = await rawPeer(other.url);
    const { nonce } = await thief.frame('hello');
    hostile.misdeed = lie('hello', { nonce });
    const tunnel = ended(startTestTunnel(hostile.url));
    const registration = await until(() => hostile.messages.find((message) => message[0] === 0x02));
    thief.sendBytes(registration);
    expect((await thief.frame('error')).code).toBe(RELAY_CODE.notAllowed);
    expect(tunnel.state().phase).not.toBe('connected');
  });

  test('is not made at all for a relay that calls itself by the name of that one', async () => {
    hostile.misdeed = lie('hello', { origin: 'wss://other.example' });
    const tunnel = ended(startTestTunnel(hostile.url));
    await until(() => tunnel.state().lastError?.includes('nothing was signed'));
    expect(hostile.messages.some((message) => message[0] === 0x02)).toBe(false);
  });
});

describe('whoever has only its word is not connected', () => {
  test.each([
    ['it brings nothing through', to({ role: 'probe' }, drop)],
    ['it brings something else through', to({ role: 'probe', from: 'relay', type: 'data' }, flip(3))],
    ['it brings half of it through', to({ role: 'probe', from: 'relay', type: 'data' }, truncate(16))],
  ])('%s', async (_, misdeed) => {
    hostile.misdeed = misdeed;
    const setTimer = (ms: number, run: () => void): (() => void) => {
      const timer = setTimeout(run, ms / 100);
      return () => clearTimeout(timer);
    };
    const tunnel = ended(startTestTunnel(hostile.url, { setTimer }));
    await until(() => tunnel.state().lastError?.includes('nothing came through'));
    expect(tunnel.said.some((text) => text.endsWith(': connected'))).toBe(false);
    hostile.misdeed = HONEST;
    await until(() => tunnel.state().phase === 'connected');
    expect(await ask(tunnel, ONE)).toEqual(ONE);
  });
});

describe('a word of it in the middle', () => {
  test.each(Object.entries(RELAY_CODE))('ERROR %s ends the connection, and it is made again', async (_, code) => {
    const tunnel = await tunnelHere();
    const link = gatewayLink();
    link.toPeer({ type: 'error', code });
    // That more tags were sent than fit is nothing to leave for.
    const isLeft = code !== RELAY_CODE.tooMany;
    await until(() => {
      tunnel.retryNow();
      const isAnother = [...hostile.links].some((one) => one.role === 'gateway' && one !== link);
      return isAnother === isLeft && tunnel.state().phase === 'connected';
    });
    expect(await ask(tunnel, ONE)).toEqual(ONE);
  });

  test('GOAWAY to another place is not followed, and its wait is bounded', async () => {
    let longest = 0;
    const setTimer = (ms: number, run: () => void): (() => void) => {
      longest = Math.max(longest, ms);
      const timer = setTimeout(run, ms >= 3_600_000 ? 0 : ms);
      return () => clearTimeout(timer);
    };
    const tunnel = ended(await connectedTunnel(hostile.url, { setTimer }));
    const elsewhere = ended(await startHostileRelay());
    const link = gatewayLink();
    link.toPeer({
      type: 'goaway',
      code: RELAY_CODE.moved,
      minMs: 3_600_000,
      spreadMs: 3_600_000,
      url: elsewhere.url,
    });
    // That it waited lasts; the wait itself may be over between two looks.
    await until(() => longest > 3_600_000 && tunnel.state().phase === 'connected');
    expect(longest).toBeLessThan(2 * 3_600_000);
    expect(elsewhere.moved()).toBe(0);
  });
});
