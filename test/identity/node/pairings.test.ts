import { equalBytes } from '../../../channel/bytes.ts';
import { deriveInviteKeys } from '../../../channel/invite.ts';
import { asRoutingId, type RoutingId } from '../../../channel/keys.ts';
import { nobleCrypto } from '../../../channel/noble.ts';
import { deriveRelayTag } from '../../../channel/relay-tag.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listAuditRecords } from '../../../core/audit/audit-log.ts';
import { addressOf } from '../../../identity/address.ts';
import { deriveAgentKey } from '../../../identity/agent-key.ts';
import { MAX_OPEN_INVITES, TooManyInvites, type InviteParams } from '../../../identity/node/invite-registry.ts';
import { findPairingGrant } from '../../../identity/pairing.ts';
import { asMasterKey } from '../../../identity/secret-keys.ts';
import { temporaryHome } from './home.ts';
import {
  description,
  deviceKeyOf,
  gateway,
  inviteKeysOf,
  openPairings,
  type PairingsOfHome,
} from './pairings-of-home.ts';
import { auditEvents } from '../../../service/audit-events.ts';

const START_MS = 1_700_000_000_500;
const START_S = 1_700_000_000;

let home: string;
let remove: () => void;
let timeMs: number;
let opened: PairingsOfHome[];
let pairings: PairingsOfHome;

beforeEach(() => {
  ({ home, remove } = temporaryHome());
  timeMs = START_MS;
  opened = [];
  pairings = open();
});
afterEach(() => {
  for (const { database } of opened) database.close();
  remove();
});

/** One more process on the same folder, as it were. */
function open(onDeviceEvent?: () => void): PairingsOfHome {
  const one = openPairings(home, { now: () => timeMs, ...(onDeviceEvent === undefined ? {} : { onDeviceEvent }) });
  opened.push(one);
  return one;
}

const [phone, laptop] = [deviceKeyOf(1), deviceKeyOf(2)];

function redeem(inviteId: string, deviceKey = phone, among = pairings) {
  return among.devices.redeem({ inviteId, deviceKey, description, gateway });
}

function pairNew(deviceKey = phone, params: InviteParams = {}) {
  const { invite, secret } = pairings.invites.create(params);
  const redemption = redeem(invite.id, deviceKey);
  if (redemption.result !== 'paired') throw new Error(redemption.result);
  return { invite, secret, ...redemption, grant: findPairingGrant(redemption.answer)! };
}

const auditKinds = (): readonly string[] =>
  listAuditRecords({ database: pairings.database, events: auditEvents }, { limit: 1000 })
    .map(({ entry }) => entry!.kind)
    .toReversed();

describe('an invite', () => {
  test('is open for ten minutes, and the handshake finds its psk by what the secret gives', () => {
    const { secret, invite } = pairings.invites.create({});
    expect(invite).toEqual({
      id: Buffer.from(inviteKeysOf(secret).inviteId).toString('hex'),
      agentIndex: undefined,
      needsApproval: false,
      withBearerKey: false,
      createdAtS: START_S,
      expiresAtS: START_S + 600,
      state: 'open',
      deviceId: undefined,
    });
    const { inviteId, psk } = inviteKeysOf(secret);
    expect(equalBytes(open().invites.findPsk(inviteId)!, psk)).toBe(true);
    expect(pairings.invites.findPsk(new Uint8Array(16))).toBeUndefined();
    timeMs = (START_S + 600) * 1000;
    expect(pairings.invites.findPsk(inviteId)).toBeUndefined();
    expect(pairings.invites.find(invite.id)?.state).toBe('expired');
    expect(redeem(invite.id)).toEqual({ result: 'over' });
  });

  test('lies in the database without its secret, and with what comes of that only sealed', () => {
    const { secret } = pairings.invites.create({});
    pairings.database.pragma('wal_checkpoint(TRUNCATE)');
    const bytes = pairings.database.serialize();
    expect(bytes.includes(Buffer.from(inviteKeysOf(secret).psk))).toBe(false);
    expect(bytes.includes(Buffer.from(secret))).toBe(false);
  });

  test.each([{ lifetimeS: 59 }, { lifetimeS: 3601 }, { lifetimeS: 60.5 }, { agentIndex: -1 }])(
    'cannot be wished for with %j',
    (params) => {
      expect(() => pairings.invites.create(params)).toThrow(RangeError);
      expect(pairings.invites.list()).toEqual([]);
    },
  );

  test(`is one of ${MAX_OPEN_INVITES} at most that are open`, () => {
    const made = Array.from({ length: MAX_OPEN_INVITES }, () => pairings.invites.create({}).invite.id);
    expect(() => pairings.invites.create({})).toThrow(TooManyInvites);
    expect(pairings.invites.close(made[0]!)).toBe(true);
    redeem(pairings.invites.create({}).invite.id);
    pairings.invites.create({});
    expect(() => open().invites.create({})).toThrow(TooManyInvites);
    timeMs += 600_000;
    pairings.invites.create({});
  });

  test('that its owner closed is over, and only one that was open can be closed', () => {
    const { invite, secret } = pairings.invites.create({});
    expect(pairings.invites.close(invite.id)).toBe(true);
    expect(pairings.invites.find(invite.id)?.state).toBe('closed');
    expect(pairings.invites.findPsk(inviteKeysOf(secret).inviteId)).toBeUndefined();
    expect(redeem(invite.id)).toEqual({ result: 'over' });
    expect(pairings.invites.close(invite.id)).toBe(false);
    expect(pairings.invites.close('0'.repeat(32))).toBe(false);
    const used = pairNew();
    expect(pairings.invites.close(used.invite.id)).toBe(false);
    expect(redeem(used.invite.id).result).toBe('repeated');
  });

  test('is listed for a day after its end; its secrets are erased with its end', () => {
    const { invite } = pairNew();
    const unused = pairings.invites.create({}).invite;
    const sealed = () =>
      pairings.database.prepare('SELECT count(psk) + count(answer) FROM invites').pluck().get() as number;
    expect(sealed()).toBe(3);
    expect(pairings.invites.list().map(({ id }) => id)).toEqual([unused.id, invite.id]);
    timeMs += 600_000;
    expect(pairings.invites.list().map(({ state }) => state)).toEqual(['expired', 'used']);
    expect(sealed()).toBe(0);
    timeMs += 24 * 3_600_000;
    expect(pairings.invites.list()).toEqual([]);
  });
});

describe('a device', () => {
  test('is paired with everything that it needs, and its grant counts in its own calls alone', () => {
    const { invite, device, grant } = pairNew();
    expect(grant).toMatchObject({ deviceId: device.id, ...gateway });
    expect(grant.bearerKey).toBeUndefined();
    expect(device).toMatchObject({ ...description, scope: 'master', protocolVersion: 1, pairedAtS: START_S });
    expect(pairings.keys.verify(grant.grant, phone)).toMatchObject({ counts: true, key: { kid: device.kid } });
    expect(pairings.keys.verify(grant.grant, laptop)).toMatchObject({ refusal: 'device_bound' });
    expect(pairings.invites.find(invite.id)).toMatchObject({ state: 'used', deviceId: device.id });
    expect(equalBytes(pairings.invites.usedBy(invite.id)!, phone)).toBe(true);
    const elsewhere = open();
    expect(equalBytes(elsewhere.devices.findPsk(phone)!, grant.psk)).toBe(true);
    expect(elsewhere.devices.findByKey(phone)).toEqual(device);
    expect(elsewhere.devices.findByKid(device.kid)).toEqual(device);
    expect(elsewhere.devices.findPsk(laptop)).toBeUndefined();
    expect(auditKinds()).toEqual(['key_created', 'device_paired']);
  });

  test('gets the same answer again until the invite expires, and another device gets none', () => {
    const { invite, answer, device } = pairNew();
    const previewed = (key = phone) => pairings.devices.preview(invite.id, key);
    expect([previewed(), previewed(laptop)]).toEqual(['repeated', 'used']);
    timeMs += 599_000;
    expect(redeem(invite.id)).toEqual({ result: 'repeated', answer, device });
    expect(redeem(invite.id, laptop)).toEqual({ result: 'used' });
    timeMs += 1000;
    expect([redeem(invite.id), redeem(invite.id, laptop)]).toEqual([{ result: 'over' }, { result: 'over' }]);
    expect(pairings.devices.list()).toEqual([device]);
    expect(pairings.devices.preview('0'.repeat(32), phone)).toBe('over');
    expect(pairings.devices.preview(pairings.invites.create({}).invite.id, laptop)).toBe('new');
  });

  test('is good for one agent, and comes with a bearer key, where the invite says so', () => {
    const { device, grant } = pairNew(phone, { agentIndex: 3, withBearerKey: true });
    const address = addressOf(deriveAgentKey(asMasterKey(new Uint8Array(32).fill(7)), 3));
    expect(device).toMatchObject({ scope: address, agentIndex: 3 });
    expect(pairings.keys.verify(grant.bearerKey!)).toMatchObject({
      counts: true,
      key: { scope: address, label: 'phone (bearer)' },
    });
    expect(auditKinds()).toEqual(['key_created', 'key_created', 'device_paired']);
  });

  test.each([
    ['a name', { name: 'a\u001b[2J', platform: 'linux' }],
    ['a platform', { name: 'a', platform: '' }],
    ['a model', { name: 'a', platform: 'linux', model: 'x'.repeat(65) }],
  ])('is not paired with %s that cannot be shown', (_, bad) => {
    const { invite } = pairings.invites.create({});
    const attempt = () => pairings.devices.redeem({ inviteId: invite.id, deviceKey: phone, description: bad, gateway });
    expect(attempt).toThrow(RangeError);
    expect(pairings.invites.find(invite.id)?.state).toBe('open');
    expect(pairings.keys.list()).toEqual([]);
  });

  test('the longest name leaves room for the mark of its bearer key', () => {
    const { invite } = pairings.invites.create({ withBearerKey: true });
    const name = '🜁'.repeat(64);
    pairings.devices.redeem({ inviteId: invite.id, deviceKey: phone, description: { name, platform: 'x' }, gateway });
    expect(pairings.keys.list().map(({ label }) => label)).toEqual([`${'🜁'.repeat(55)} (bearer)`, name]);
  });

  test('is all or nothing: where the audit log cannot have it, nothing happened', async () => {
    const deaf = open(() => {
      throw new Error('the log is full');
    });
    const { invite } = pairings.invites.create({ withBearerKey: true });
    expect(() => redeem(invite.id, phone, deaf)).toThrow('the log is full');
    expect(pairings.keys.list()).toEqual([]);
    expect(pairings.invites.find(invite.id)?.state).toBe('open');
    const { device } = pairNew();
    await expect(deaf.devices.revoke(device.id)).rejects.toThrow('the log is full');
    expect(pairings.devices.findPsk(phone)).toBeDefined();
    // Where it was revoked it is refused all the same, and no relay is told its tags.
    const { devices } = deaf;
    const routingId = new Uint8Array(15) as RoutingId;
    expect([devices.findPsk(phone), devices.findByKey(phone), devices.relayTags(routingId, 1)]).toEqual([
      undefined,
      undefined,
      [],
    ]);
    const again = pairings.invites.create({}).invite.id;
    expect(() => redeem(again, phone, deaf)).toThrow('the log is full');
    expect(pairings.devices.findByKey(phone)).toEqual(device);
  });

  test('is renamed to what can be shown', () => {
    const { device } = pairNew();
    expect(pairings.devices.rename(device.id, 'tablet')).toBe(true);
    expect(pairings.devices.find(device.id)?.name).toBe('tablet');
    expect(() => pairings.devices.rename(device.id, 'a\nb')).toThrow(RangeError);
    expect(pairings.devices.rename('anonymous', 'tablet')).toBe(false);
  });

  test('was last here, to the minute', () => {
    const { device } = pairNew();
    const visit = (laterMs: number, path: 'lan' | 'relay') => {
      timeMs = START_MS + laterMs;
      pairings.devices.touch(pairings.devices.find(device.id)!, path);
      const { lastSeenAtS, lastPath } = pairings.devices.find(device.id)!;
      return [lastSeenAtS, lastPath];
    };
    expect(visit(0, 'lan')).toEqual([START_S, 'lan']);
    expect(visit(59_000, 'relay')).toEqual([START_S, 'lan']);
    expect(visit(60_000, 'relay')).toEqual([START_S + 60, 'relay']);
    pairings.devices.touch({ id: 'anonymous', lastSeenAtS: undefined }, 'lan');
  });
});

describe('a device that is let in without an invite', () => {
  const admit = (deviceKey = phone, agentIndex?: number, among = pairings) =>
    among.devices.admit({ deviceKey, description, gateway }, agentIndex);

  test('is one like any other, for the agent that is named', () => {
    const { answer, device } = admit(phone, 3);
    const grant = findPairingGrant(answer)!;
    expect(grant).toMatchObject({ deviceId: device.id, ...gateway });
    expect(device).toMatchObject({ ...description, agentIndex: 3, scope: expect.stringMatching(/^0x/) });
    expect(equalBytes(pairings.devices.findPsk(phone)!, grant.psk)).toBe(true);
    expect(pairings.keys.verify(grant.grant, phone)).toMatchObject({ counts: true });
    expect(auditKinds()).toEqual(['key_created', 'device_paired']);
    expect(admit(laptop).device.scope).toBe('master');
  });

  test('takes the place of what was paired with its key', () => {
    const first = pairNew(phone);
    const told: string[] = [];
    pairings.keys.onRevocation((kids) => void told.push(...kids));
    const { device } = admit(phone);
    expect(told).toEqual([first.device.kid]);
    expect(pairings.devices.findByKey(phone)).toEqual(device);
  });

  test('is let in wholly or not at all', () => {
    const deaf = open(() => {
      throw new Error('the log is full');
    });
    expect(() => admit(phone, undefined, deaf)).toThrow('the log is full');
    expect([pairings.keys.list(), pairings.devices.list()]).toEqual([[], []]);
    const unsound = { deviceKey: phone, description: { name: 'a\nb', platform: 'x' }, gateway };
    expect(() => pairings.devices.admit(unsound, undefined)).toThrow(RangeError);
  });
});

describe('revoking', () => {
  const secretsLeft = () =>
    pairings.database
      .prepare('SELECT (SELECT count(psk) FROM devices) + (SELECT count(psk) + count(answer) FROM invites)')
      .pluck()
      .get();

  test.each([
    ['the device', (id: string) => pairings.devices.revoke(id)],
    ['its grant', (_: string, kid: string) => pairings.keys.revoke(kid)],
    ['everything', () => pairings.keys.revokeAll()],
    ['its grant, in another process', (_: string, kid: string) => open().keys.revoke(kid)],
  ])('%s takes the device, its bearer key and what it could ask for again', async (_, revoke) => {
    const { device, invite, grant } = pairNew(phone, { withBearerKey: true });
    const told: string[][] = [];
    for (const { keys } of opened) keys.onRevocation((kids) => void told.push([...kids]));
    await revoke(device.id, device.kid);
    expect(pairings.devices.find(device.id)?.revokedAtS).toBe(START_S);
    expect(pairings.devices.findByKey(phone)).toBeUndefined();
    expect(pairings.devices.findPsk(phone)).toBeUndefined();
    expect(pairings.keys.verify(grant.grant, phone)).toMatchObject({ refusal: 'revoked' });
    expect(pairings.keys.verify(grant.bearerKey!)).toMatchObject({ refusal: 'revoked' });
    expect(pairings.invites.find(invite.id)).toMatchObject({ state: 'closed', deviceId: device.id });
    expect(redeem(invite.id)).toEqual({ result: 'over' });
    expect(secretsLeft()).toBe(0);
    const bearerKid = pairings.keys.list().find(({ kid }) => kid !== device.kid)!.kid;
    // The other process's listeners are its own.
    if (told.length > 0) expect(told.map((kids) => kids.toSorted())).toEqual([[device.kid, bearerKid].toSorted()]);
    expect(auditKinds().slice(3)).toEqual(['key_revoked', 'key_revoked', 'device_revoked']);
    expect(pairings.verifyAudit()).toMatchObject({ intact: true });
  });

  test('twice is said, and tells the listeners again', async () => {
    const { device } = pairNew(phone, { withBearerKey: true });
    const told: number[] = [];
    pairings.keys.onRevocation((kids) => void told.push(kids.length));
    expect(await pairings.devices.revoke(device.id)).toMatchObject({ result: 'revoked' });
    timeMs += 5000;
    expect(await pairings.devices.revoke(device.id)).toMatchObject({ result: 'already' });
    expect(pairings.devices.find(device.id)?.revokedAtS).toBe(START_S);
    expect(told).toEqual([2, 2]);
    expect(auditKinds().filter((kind) => kind === 'device_revoked')).toHaveLength(1);
    expect(await pairings.devices.revoke('anonymous')).toEqual({ result: 'unknown', cut: 0, isDurable: true });
  });

  test('a bearer key alone leaves the device as it is', async () => {
    const { device } = pairNew(phone, { withBearerKey: true });
    const bearer = pairings.keys.list().find(({ kid }) => kid !== device.kid)!;
    await pairings.keys.revoke(bearer.kid);
    expect(pairings.devices.findPsk(phone)).toBeDefined();
  });

  test('one device leaves the others, and it can be paired again as a new one', async () => {
    const [first, other] = [pairNew(phone), pairNew(laptop)];
    await pairings.devices.revoke(first.device.id);
    const again = pairNew(phone);
    expect(again.device.id).not.toBe(first.device.id);
    expect(equalBytes(pairings.devices.findPsk(phone)!, again.grant.psk)).toBe(true);
    expect(pairings.devices.findByKey(laptop)).toEqual(other.device);
    expect(pairings.devices.find(first.device.id)?.revokedAtS).toBe(START_S);
    expect(pairings.keys.verify(first.grant.grant, phone)).toMatchObject({ refusal: 'revoked' });
  });

  test('comes with pairing anew: the device that was there is no longer valid, and what it had in flight ends', async () => {
    const first = pairNew(phone, { withBearerKey: true });
    const told: string[] = [];
    pairings.keys.onRevocation((kids) => void told.push(...kids));
    const second = pairNew(phone);
    expect(told).toContain(first.device.kid);
    expect(told).not.toContain(second.device.kid);
    expect(pairings.devices.findByKey(phone)).toEqual(second.device);
    expect(pairings.keys.verify(first.grant.bearerKey!)).toMatchObject({ refusal: 'revoked' });
    expect(redeem(first.invite.id)).toEqual({ result: 'over' });
    expect(redeem(second.invite.id).result).toBe('repeated');
  });
});

describe('the tags that open a relay’s way', () => {
  const crypto = nobleCrypto((length) => new Uint8Array(length));
  const [home1, home2] = [1, 2].map((byte) => asRoutingId(new Uint8Array(15).fill(byte))) as [RoutingId, RoutingId];
  const hex = (tags: readonly Uint8Array[]) => tags.map((tag) => Buffer.from(tag).toString('hex'));

  test('of a device: another each day and at each relay, until it is revoked', async () => {
    const { grant, device } = pairNew();
    const [today] = pairings.devices.relayTags(home1, 20_000);
    expect(today).toEqual(deriveRelayTag(crypto, grant.psk, { routingId: home1, day: 20_000 }));
    const all = [20_000, 20_001].flatMap((day) =>
      [home1, home2].flatMap((rid) => pairings.devices.relayTags(rid, day)),
    );
    expect(new Set(hex(all)).size).toBe(4);
    await pairings.devices.revoke(device.id);
    expect(pairings.devices.relayTags(home1, 20_000)).toEqual([]);
  });

  test('of an invite: at the relays that it is for, until it is closed or over', () => {
    const { invites } = pairings;
    const { secret, invite } = invites.create({ routingIds: [home1, home2] });
    const { relayTag } = deriveInviteKeys(crypto, secret);
    expect(invites.relayTags(home2)).toEqual([{ tag: relayTag(home2), expiresAtS: invite.expiresAtS }]);
    const other = invites.create({ routingIds: [home1] });
    expect(invites.relayTags(home2)).toHaveLength(1);
    expect(invites.relayTags(home1)).toHaveLength(2);
    invites.close(other.invite.id);
    expect(invites.relayTags(home1)).toHaveLength(1);
    timeMs = invite.expiresAtS * 1000;
    expect(invites.relayTags(home1)).toEqual([]);
  });
});
