/** How a device with an invite becomes a paired one, and all the ways in which it does not. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asInviteSecret } from '../../channel/keys.ts';
import type { InviteCode } from '../../identity/invite-code.ts';
import { findPairingGrant } from '../../identity/pairing.ts';
import { newInvite } from '../support/invites.ts';
import {
  confirmPairing,
  exchange,
  newStaticKey,
  openCall,
  pairRaw,
  rawSession,
  request,
  sendCall,
  sealCall,
  startPairing,
  startRawSession,
  textOf,
  type RawAnswer,
} from '../support/raw-device.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

let home: string;
let service: ServiceHere;

beforeAll(async () => {
  home = await temporaryHome();
  service = await startServiceHere(home);
});
afterAll(async () => {
  await service?.stop();
  await removeHome(home);
});

const errorOf = (answer: RawAnswer) => [
  answer.head?.status,
  (JSON.parse(textOf(answer)) as { error: { code: string } }).error.code,
];
const devices = async () => (await service.running.identity.openPairings()).devices;
const invites = async () => (await service.running.identity.openPairings()).invites;
const idOf = async () => (await invites()).list()[0]!.id;

/** A pairing up to the answer of its confirmation. */
async function redeem(code: InviteCode, staticKey = newStaticKey(), description?: { name: string; platform: string }) {
  const { session, status } = await startPairing(service.url, code, staticKey);
  if (session === undefined) throw new Error(`the handshake was refused: ${status}`);
  return confirmPairing(service.url, session, description);
}

const countDevices = async () => (await devices()).list().length;

describe('an invite', () => {
  test('makes a device that can call, listed with what it said of itself', async () => {
    const device = await pairRaw(service.url, await newInvite(service));
    const listed = (await devices()).find(device.grant.deviceId);
    expect(listed).toMatchObject({ name: 'raw device', platform: 'test', scope: 'master', revokedAtS: undefined });
    const session = await rawSession(service.url, device);
    const answer = await sendCall(`${service.url}/secure/call`, session, request('GET', '/v1/models'));
    expect(answer.head?.status).toBe(200);
    expect((await devices()).find(device.grant.deviceId)).toMatchObject({ lastPath: 'lan' });
  });

  test('gives a grant that counts nowhere else', async () => {
    const { grant } = await pairRaw(service.url, await newInvite(service));
    expect(grant.bearerKey).toBeUndefined();
    const { keys } = { keys: await service.running.identity.open() };
    expect(keys.verify(grant.grant)).toMatchObject({ counts: false, refusal: 'device_bound' });
  });

  test('makes a plain key too, where its owner wanted one', async () => {
    const { grant } = await pairRaw(service.url, await newInvite(service, { withBearerKey: true }));
    const keys = await service.running.identity.open();
    expect(keys.verify(grant.bearerKey!)).toMatchObject({ counts: true });
  });

  test('with a wrong secret opens nothing, and spoils nothing', async () => {
    const code = await newInvite(service);
    const wrong = { ...code, secret: asInviteSecret(new Uint8Array(16).fill(7)) };
    const before = await countDevices();
    expect(await startPairing(service.url, wrong, newStaticKey())).toMatchObject({ status: 401, hint: 1 });
    expect(await countDevices()).toBe(before);
    await pairRaw(service.url, code);
  });

  test('of another gateway is none here', async () => {
    const code = await newInvite(service);
    const otherGateway = { ...code, gatewayKey: newStaticKey().publicKey };
    expect(await startPairing(service.url, otherGateway, newStaticKey())).toMatchObject({ hint: 1 });
  });

  test('that was closed or is over opens nothing', async () => {
    const code = await newInvite(service);
    const id = await idOf();
    const { session } = await startPairing(service.url, code, newStaticKey());
    (await invites()).close(id);
    expect(await startPairing(service.url, code, newStaticKey())).toMatchObject({ hint: 1 });
    // Also one whose handshake was made before.
    expect(errorOf(await confirmPairing(service.url, session!))).toEqual([410, 'invite_over']);
  });

  test('is for one device: another is told so', async () => {
    const code = await newInvite(service);
    await pairRaw(service.url, code);
    const before = await countDevices();
    expect(errorOf(await redeem(code))).toEqual([409, 'invite_used']);
    expect(await countDevices()).toBe(before);
  });

  test('gives the same device the same answer again, to the byte', async () => {
    const code = await newInvite(service);
    const staticKey = newStaticKey();
    const first = await redeem(code, staticKey);
    const before = await countDevices();
    const again = await redeem(code, staticKey, { name: 'another name', platform: 'test' });
    expect(textOf(again)).toBe(textOf(first));
    expect(await countDevices()).toBe(before);
    expect(findPairingGrant(again.body)).toBeDefined();
  });

  test('pairs a device again that is paired already: the former pairing is over', async () => {
    const staticKey = newStaticKey();
    const first = await pairRaw(service.url, await newInvite(service), staticKey);
    const second = await pairRaw(service.url, await newInvite(service), staticKey);
    expect(second.grant.deviceId).not.toBe(first.grant.deviceId);
    expect((await startRawSession(service.url, second)).session).toBeDefined();
    expect((await devices()).find(first.grant.deviceId)?.revokedAtS).toBeDefined();
  });

  test('that was made before the device was paired does not pair it again, however late it is confirmed', async () => {
    const staticKey = newStaticKey();
    const [withheld, used] = [await newInvite(service), await newInvite(service)];
    const { session } = await startPairing(service.url, withheld, staticKey);
    const paired = await pairRaw(service.url, used, staticKey);
    const late = await confirmPairing(service.url, session!);
    expect(errorOf(late)).toEqual([410, 'invite_over']);
    expect((await startRawSession(service.url, paired)).session).toBeDefined();
    // For another device it is as good as before.
    await pairRaw(service.url, withheld);
  });

  test('is confirmed by POST with an idempotency key, and by nothing else', async () => {
    const code = await newInvite(service);
    const staticKey = newStaticKey();
    const before = await countDevices();
    const { session } = await startPairing(service.url, code, staticKey);
    const body = Buffer.from('{"name":"laptop","platform":"linux"}');
    const confirm = (method: string, change: object = {}) => {
      const { head } = request(method, '/pair/confirm', { bodyBytes: body.length });
      return sendCall(`${service.url}/pair-invite`, session!, { head: { ...head, ...change }, body });
    };
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'post'])
      expect(errorOf(await confirm(method))).toEqual([405, 'method_not_allowed']);
    const { idempotencyKey: _, ...withoutKey } = request('POST', '/pair/confirm', { bodyBytes: body.length }).head;
    const answer = await sendCall(`${service.url}/pair-invite`, session!, { head: withoutKey, body });
    expect(errorOf(answer)).toEqual([400, 'bad_request']);
    expect(await countDevices()).toBe(before);
    expect((await confirm('POST')).head?.status).toBe(200);
  });

  test('of two devices at once takes one', async () => {
    const code = await newInvite(service);
    const before = await countDevices();
    const sessions = await Promise.all([1, 2, 3].map(() => startPairing(service.url, code, newStaticKey())));
    const answers = await Promise.all(sessions.map(({ session }) => confirmPairing(service.url, session!)));
    const statuses = answers.map(({ head }) => head?.status);
    expect([statuses.filter((status) => status === 200), statuses.filter((status) => status === 409)]).toEqual([
      [200],
      [409, 409],
    ]);
    expect(await countDevices()).toBe(before + 1);
  });

  test('whose answer was lost is not lost', async () => {
    const code = await newInvite(service);
    const staticKey = newStaticKey();
    const { session } = await startPairing(service.url, code, staticKey);
    const call = openCall(session!);
    const body = Buffer.from('{"name":"laptop","platform":"linux"}');
    const { head } = request('POST', '/pair/confirm', { bodyBytes: body.length });
    const { bytes } = await exchange(`${service.url}/pair-invite`, sealCall(call, { head, body }));
    expect(bytes.length).toBeGreaterThan(22);
    // What came is thrown away, as if it had never come.
    const device = await pairRaw(service.url, code, staticKey);
    expect((await startRawSession(service.url, device)).session).toBeDefined();
  });

  test.each([
    ['nothing', ''],
    ['no JSON', '{'],
    ['no name', '{"platform":"linux"}'],
    ['a name that rings', '{"name":"a\\u0007","platform":"linux"}'],
    ['a name of 65 characters', JSON.stringify({ name: 'x'.repeat(65), platform: 'linux' })],
  ])('takes no device that says %s of itself, and another try of it', async (_, text) => {
    const code = await newInvite(service);
    const staticKey = newStaticKey();
    const { session } = await startPairing(service.url, code, staticKey);
    const body = Buffer.from(text);
    const { head } = request('POST', '/pair/confirm', { bodyBytes: body.length });
    const answer = await sendCall(`${service.url}/pair-invite`, session!, { head, body });
    expect(errorOf(answer)).toEqual([400, 'bad_request']);
    await pairRaw(service.url, code, staticKey);
    await (await devices()).revoke((await devices()).list()[0]!.id);
  });
});

describe('an invite that asks the owner', () => {
  const pending = () => service.running.approvals.list().filter(({ kind }) => kind === 'pairing');
  const decide = (decision: 'approved' | 'denied') => service.running.approvals.decide(pending()[0]!.id, decision);

  test('pairs when the owner says yes, who reads what the device says of itself', async () => {
    const answer = redeem(await newInvite(service, { needsApproval: true }), newStaticKey(), {
      name: 'Zoe',
      platform: 'phone',
    });
    await until(() => pending().length === 1);
    expect(pending()[0]!.summary).toMatch(/"Zoe".*phone/);
    const before = await countDevices();
    decide('approved');
    expect((await answer).head?.status).toBe(200);
    expect(await countDevices()).toBe(before + 1);
  });

  test('makes nothing when the owner says no', async () => {
    const before = await countDevices();
    const code = await newInvite(service, { needsApproval: true });
    const answer = redeem(code);
    await until(() => pending().length === 1);
    decide('denied');
    expect(errorOf(await answer)).toEqual([403, 'pairing_denied']);
    // And is not asked again about the same invite.
    expect(await startPairing(service.url, code, newStaticKey())).toMatchObject({ hint: 1 });
    expect(await countDevices()).toBe(before);
  });

  test('asks once, though the device loses its way and comes again', async () => {
    const code = await newInvite(service, { needsApproval: true });
    const staticKey = newStaticKey();
    const answers = [redeem(code, staticKey), redeem(code, staticKey)];
    await until(() => pending().length === 1);
    decide('approved');
    const [one, other] = await Promise.all(answers);
    expect(textOf(one!)).toBe(textOf(other!));
    expect(pending()).toEqual([]);
  });

  test('remembers a yes that came while the device was away', async () => {
    const code = await newInvite(service, { needsApproval: true });
    const staticKey = newStaticKey();
    const { session } = await startPairing(service.url, code, staticKey);
    const lost = confirmPairing(service.url, session!);
    await until(() => pending().length === 1);
    const before = await countDevices();
    decide('approved');
    await lost;
    expect(await countDevices()).toBe(before + 1);
    await pairRaw(service.url, code, staticKey);
    expect(await countDevices()).toBe(before + 1);
  });
});
