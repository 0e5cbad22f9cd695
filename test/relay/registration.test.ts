/** Who may hold a routing id, and who may come in under it. */
import { describe, expect, test } from 'vitest';
import { parseAdmission, type Admission } from '../../relay/admission.ts';
import { formatRoutingId } from '../../relay/routing-id.ts';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import { registrationMessage } from '../../relay/wire/registration.ts';
import {
  DEVICE_TAG,
  join,
  makeRelayKey,
  PAIRING_TAG,
  rawClient,
  rawGateway,
  rawPeer,
  register,
  settled,
  relayHere,
  tagOf,
  type RawPeer,
} from '../support/relay-here.ts';
import { until } from '../support/wait.ts';

/** The code that a peer was turned away with. */
async function refusal(peer: RawPeer): Promise<number> {
  const { code } = await peer.frame('error');
  await until(() => peer.isClosed());
  return code;
}

describe('a registration', () => {
  test('is answered with the routing id of the key', async () => {
    const relay = await relayHere();
    const { key, frames } = await rawGateway(relay);
    expect(frames.find((frame) => frame.type === 'registered')).toMatchObject({ routingId: key.routingId });
    expect(relay.log.join()).toContain(formatRoutingId(key.routingId).slice(0, 4));
    expect(relay.log.join()).not.toContain(formatRoutingId(key.routingId).slice(0, 5));
  });

  test.each([
    ['for another origin', (bytes: Uint8Array) => bytes, 'wss://relay.example'],
    ['with a bit flipped', (bytes: Uint8Array) => bytes.map((byte, at) => (at === 40 ? byte ^ 1 : byte)), undefined],
  ])('%s is refused', async (_name, tamper, origin) => {
    const relay = await relayHere();
    const key = makeRelayKey();
    const peer = await rawPeer(relay.url);
    await register(peer, {
      key: { ...key, sign: (bytes) => tamper(key.sign(bytes)) },
      epoch: 1,
      origin: origin ?? relay.origin,
    });
    expect(await refusal(peer)).toBe(RELAY_CODE.notAllowed);
  });

  test('by a key that is no point is refused', async () => {
    const relay = await relayHere();
    const peer = await rawPeer(relay.url);
    const key = { ...makeRelayKey(), publicKey: new Uint8Array(32).fill(0xff) };
    await register(peer, { key, epoch: 1, origin: relay.origin });
    expect(await refusal(peer)).toBe(RELAY_CODE.notAllowed);
  });

  test('that was recorded is worth nothing on another connection', async () => {
    const relay = await relayHere();
    const key = makeRelayKey();
    const first = await rawPeer(relay.url);
    const { nonce } = await first.frame('hello');
    const registration = { publicKey: key.publicKey, epoch: 1, caps: 0, admission: new Uint8Array(0) };
    const signature = key.sign(registrationMessage({ origin: relay.origin, nonce }, registration));
    const thief = await rawPeer(relay.url);
    await thief.frame('hello');
    thief.send({ type: 'register', signature, ...registration });
    expect(await refusal(thief)).toBe(RELAY_CODE.notAllowed);
    first.send({ type: 'register', signature, ...registration });
    await first.frame('registered');
  });

  test.each([
    ['lower', -1],
    ['equal', 0],
  ])('with a %s epoch is refused, and the holder stays', async (_name, difference) => {
    const relay = await relayHere();
    const holder = await rawGateway(relay, { epoch: 1000 });
    const late = await rawPeer(relay.url);
    await register(late, { key: holder.key, epoch: 1000 + difference, origin: relay.origin });
    expect(await refusal(late)).toBe(RELAY_CODE.replaced);
    await rawClient(relay, holder.key.routingId);
    expect(holder.isClosed()).toBe(false);
  });

  test('with a higher epoch takes over: the old one is told, and its clients must come again', async () => {
    const relay = await relayHere();
    const old = await rawGateway(relay, { epoch: 1000 });
    const client = await rawClient(relay, old.key.routingId);
    const next = await rawGateway(relay, { key: old.key, epoch: 1001 });
    expect(await old.frame('goaway')).toMatchObject({ code: RELAY_CODE.replaced });
    expect(await refusal(client)).toBe(RELAY_CODE.offline);
    await rawClient(relay, next.key.routingId);
  });

  test('is admitted by the list as it is now', async () => {
    const [one, two] = [makeRelayKey(), makeRelayKey()];
    const list = (text: string): Admission => {
      const admission = parseAdmission(text);
      if (typeof admission === 'string') throw new Error(admission);
      return admission;
    };
    const relay = await relayHere({}, { admission: list(`# mine\n${Buffer.from(one.publicKey).toString('hex')}\n`) });
    await rawGateway(relay, { key: one });
    const peer = await rawPeer(relay.url);
    await register(peer, { key: two, epoch: 1, origin: relay.origin });
    expect(await refusal(peer)).toBe(RELAY_CODE.notAllowed);
    relay.setAdmission(list(`${formatRoutingId(two.routingId).toUpperCase()} # by its id`));
    await rawGateway(relay, { key: two });
  });

  test('list with a line that is neither key nor id is refused whole', () => {
    expect(parseAdmission('# nothing\n\nwhat\n')).toContain('line 3');
    expect(typeof parseAdmission(Buffer.alloc(32, 7).toString('base64url'))).toBe('object');
  });
});

describe('a join', () => {
  test('with an unknown tag is refused, and the gateway hears nothing', async () => {
    const relay = await relayHere();
    const gateway = await rawGateway(relay);
    const before = gateway.frames.length;
    await expect(join(relay.url, gateway.key.routingId, tagOf(9))).rejects.toMatchObject({ code: RELAY_CODE.offline });
    await settled(gateway);
    expect(gateway.frames.length).toBe(before + 1);
  });

  test('to nobody is refused', async () => {
    const relay = await relayHere();
    await expect(join(relay.url, makeRelayKey().routingId)).rejects.toMatchObject({ code: RELAY_CODE.offline });
  });

  test('with a tag of yesterday or tomorrow comes in while the gateway allows it, and no longer', async () => {
    let nowMs = Date.now();
    const relay = await relayHere({}, { now: () => nowMs });
    const gateway = await rawGateway(relay);
    const minute = Math.floor(nowMs / 60_000);
    gateway.send({
      type: 'allow',
      allowances: [
        { tag: tagOf(10), expiresAtMinute: minute, tagClass: 'device' },
        { tag: tagOf(11), expiresAtMinute: minute + 1440, tagClass: 'device' },
        { tag: tagOf(12), expiresAtMinute: minute + 2880, tagClass: 'device' },
      ],
    });
    await settled(gateway);
    const { routingId } = gateway.key;
    await expect(join(relay.url, routingId, tagOf(10))).rejects.toMatchObject({ code: RELAY_CODE.offline });
    const yesterday = await rawClient(relay, routingId, tagOf(11));
    await rawClient(relay, routingId, tagOf(12));
    nowMs += 86_400_000 + 60_000;
    await expect(join(relay.url, routingId, tagOf(11))).rejects.toMatchObject({ code: RELAY_CODE.offline });
    await rawClient(relay, routingId, tagOf(12));
    // Who came in with it opens nothing new either.
    yesterday.send({ type: 'open', stream: 1, op: 3 });
    expect(await yesterday.frame('reset')).toMatchObject({ code: RELAY_CODE.notAllowed });
  });

  test('with an invite’s tag opens pairing, and nothing else', async () => {
    const relay = await relayHere();
    const gateway = await rawGateway(relay);
    const client = await rawClient(relay, gateway.key.routingId, PAIRING_TAG);
    for (const [index, op] of [0x01, 0x7e, 0x02, 0x00].entries()) {
      client.send({ type: 'open', stream: index + 1, op });
      expect(await client.frame('reset', index)).toMatchObject({ code: RELAY_CODE.notAllowed });
    }
    for (const [index, op] of [0x11, 0x20, 0x22, 0x03].entries()) {
      client.send({ type: 'open', stream: index + 10, op });
      expect(await gateway.frame('open', index)).toMatchObject({ op });
    }
    client.send({ type: 'open', stream: 20, op: 3 });
    expect(await client.frame('reset', 4)).toMatchObject({ code: RELAY_CODE.tooMany });
  });

  test('is named to the gateway by 8 bytes that differ from connection to connection', async () => {
    const relay = await relayHere();
    const gateway = await rawGateway(relay);
    for (const index of [0, 1]) {
      const client = await rawClient(relay, gateway.key.routingId);
      client.send({ type: 'open', stream: 1, op: 3 });
      expect((await gateway.frame('open', index)).connectionTag?.length).toBe(8);
    }
    const [one, two] = gateway.frames.filter((frame) => frame.type === 'open');
    expect(one?.connectionTag).not.toEqual(two?.connectionTag);
  });

  test('ends with the tag: DENY of one, and of all', async () => {
    const relay = await relayHere();
    const gateway = await rawGateway(relay);
    const { routingId } = gateway.key;
    const [device, pairing] = [await rawClient(relay, routingId), await rawClient(relay, routingId, PAIRING_TAG)];
    device.send({ type: 'open', stream: 1, op: 3 });
    await gateway.frame('open');
    gateway.send({ type: 'deny', tags: [DEVICE_TAG] });
    expect(await device.frame('reset')).toMatchObject({ stream: 1, code: RELAY_CODE.revoked });
    expect(await refusal(device)).toBe(RELAY_CODE.revoked);
    expect(await gateway.frame('reset')).toMatchObject({ code: RELAY_CODE.revoked });
    expect(pairing.isClosed()).toBe(false);
    gateway.send({ type: 'deny', tags: [] });
    expect(await refusal(pairing)).toBe(RELAY_CODE.revoked);
  });
});
