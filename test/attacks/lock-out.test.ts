/**
 * Others fail as often as they like, from the very address that the rightful one has (a shared router, another program
 * on the same machine), and whoever has a valid key, device, invite or code is let in all the same.
 */
import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodeCallHeader, encodeEnvelope } from '../../channel/envelope.ts';
import { deriveInviteKeys } from '../../channel/invite.ts';
import { asInviteSecret, asPsk, asSessionId } from '../../channel/keys.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import type { InviteCode } from '../../identity/invite-code.ts';
import { forge } from '../support/access-keys.ts';
import { newInvite } from '../support/invites.ts';
import {
  confirmPairing,
  exchange,
  newStaticKey,
  pairRaw,
  request,
  sendCall,
  startPairing,
  startRawSession,
  type PairedRaw,
} from '../support/raw-device.ts';
import { ask, codesAt, confirm, fetchChallenge, open, prove, wrong } from '../support/raw-discovery.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

/** Of the rightful one, and of the attacker. */
const SHARED = '127.8.0.1';
/** More than any limit that there was. */
const FLOOD = 150;

let home: string;
let service: ServiceHere;
beforeAll(async () => {
  home = await temporaryHome();
  service = await startServiceHere(home, { 'access.requireKeyOnLoopback': true });
});
afterAll(async () => {
  await service.stop();
  await removeHome(home);
});

const times = async (count: number, run: (at: number) => Promise<unknown>): Promise<void> => {
  for (let at = 0; at < count; at += 1) await run(at);
};
const elsewhere = (at: number): string => `127.8.1.${at + 1}`;

async function makeKey() {
  const registry = await service.running.identity.open();
  return registry.create({});
}

function listModels(token: string, from = SHARED): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const options = { localAddress: from, agent: false, headers };
    const asked = httpRequest(`${service.url}/v1/models`, options, (response) => {
      json(response).then(() => resolve(response.statusCode), reject);
    });
    asked.on('error', reject).end();
  });
}

async function sealedCall(device: PairedRaw, from = SHARED): Promise<number | undefined> {
  const { session, hint } = await startRawSession(service.url, device, { from });
  if (session === undefined) throw new Error(`no session: hint ${hint}`);
  return (await sendCall(`${service.url}/secure/call`, session, request('GET', '/v1/models'), from)).head?.status;
}

async function redeem(invite: InviteCode, from = SHARED): Promise<number | undefined> {
  const { session, hint } = await startPairing(service.url, invite, newStaticKey(), from);
  if (session === undefined) throw new Error(`no pairing: hint ${hint}`);
  return (await confirmPairing(service.url, session)).head?.status;
}

interface CodeRequest {
  readonly challenge: Awaited<ReturnType<typeof fetchChallenge>>;
  readonly share: Uint8Array;
  readonly code: string;
}

async function askForCode(from: string): Promise<CodeRequest> {
  const challenge = await fetchChallenge(service.url, from);
  const { share, hint } = await open(service.url, challenge, from);
  if (share === undefined) throw new Error(`no code: hint ${hint}`);
  return { challenge, share, code: codesAt(service).at(-1)! };
}

async function typeCode({ challenge, share, code }: CodeRequest, from: string): Promise<number | undefined> {
  const proof = prove(challenge, { code, share });
  const { noise, hint } = await ask(service.url, proof.envelope, from);
  if (noise === undefined) throw new Error(`not proved: hint ${hint}`);
  return (await confirm(service.url, proof.finish(noise))).head?.status;
}

async function guessThrice({ challenge, share, code }: CodeRequest, from: string): Promise<void> {
  let last = share;
  for (const attempt of [0, 1, 2]) {
    const { envelope } = prove(challenge, { code: wrong(code, attempt + 1), attempt, share: last });
    last = (await ask(service.url, envelope, from)).share ?? last;
  }
}

describe('Keys that do not count, shown from the address of somebody whose key does', () => {
  test.each([
    ['text that is no key', () => 'sk-guess'],
    ['forgeries of a key that is in use', (used: string) => forge({ id: '', scope: '', token: used })],
    [
      'forgeries of a key that nobody has shown yet',
      (_: string, fresh: string) => forge({ id: '', scope: '', token: fresh }),
    ],
  ])('%s keep no valid key out, not even one that is shown for the first time', async (_attack, shown) => {
    const [used, fresh] = [await makeKey(), await makeKey()];
    expect(await listModels(used.token)).toBe(200);
    const bad = shown(used.token, fresh.token);
    const answers = new Set<number | undefined>();
    await times(FLOOD, async () => answers.add(await listModels(bad)));
    // Whoever fails is told to wait; the others are not.
    expect([answers.has(429), answers.has(200)]).toEqual([true, false]);
    expect([await listModels(used.token), await listModels(fresh.token)]).toEqual([200, 200]);
  });
});

describe('Handshakes and calls that fail, from the address of a paired device', () => {
  test('handshakes of strangers keep no paired device out', async () => {
    const device = await pairRaw(service.url, await newInvite(service));
    const stranger = { ...device, staticKey: newStaticKey(), grant: { psk: asPsk(randomBytes(32)) } };
    await times(FLOOD, () => startRawSession(service.url, stranger, { from: SHARED }));
    expect(await sealedCall(device)).toBe(200);
  });

  test('handshakes of strangers from everywhere at once keep no paired device out', async () => {
    const device = await pairRaw(service.url, await newInvite(service));
    const stranger = { ...device, staticKey: newStaticKey(), grant: { psk: asPsk(randomBytes(32)) } };
    const flood = Array.from({ length: FLOOD }, (_, at) =>
      startRawSession(service.url, stranger, { from: elsewhere(at) }),
    );
    expect(await sealedCall(device)).toBe(200);
    await Promise.all(flood);
    expect(await sealedCall(device)).toBe(200);
  });

  test('handshakes of another device at the same address keep no paired device out', async () => {
    const [greedy, device] = [
      await pairRaw(service.url, await newInvite(service)),
      await pairRaw(service.url, await newInvite(service)),
    ];
    const hints = new Set<number | undefined>();
    await times(20, async () => hints.add((await startRawSession(service.url, greedy, { from: SHARED })).hint));
    expect(hints).toEqual(new Set([undefined, 6]));
    expect(await sealedCall(device)).toBe(200);
  });

  test('calls of sessions that there are not end no call of a session that there is', async () => {
    const device = await pairRaw(service.url, await newInvite(service));
    const header = encodeCallHeader('callRequest', { sessionId: asSessionId(randomBytes(16)), callNumber: 0 });
    const call = Buffer.concat([header, randomBytes(300)]);
    await times(FLOOD, () => exchange(`${service.url}/secure/call`, call, SHARED));
    expect(await sealedCall(device)).toBe(200);
  });
});

describe('Pairings that fail, from the address of somebody who holds an invite', () => {
  const guess = (invite: InviteCode) => ({ ...invite, secret: asInviteSecret(randomBytes(16)) });

  test('guesses at invites keep no holder of one out', async () => {
    const invite = await newInvite(service);
    await times(FLOOD, () => startPairing(service.url, guess(invite), newStaticKey(), SHARED));
    expect(await redeem(invite)).toBe(200);
  });

  test('handshakes that name the very invite, and do not know its secret, keep its holder out no more', async () => {
    const invite = await newInvite(service);
    const { inviteId } = deriveInviteKeys(gatewayCrypto('node'), invite.secret);
    const asked = encodeEnvelope({ kind: 'inviteRequest', inviteId, noise: randomBytes(1552) });
    await times(FLOOD, () => exchange(`${service.url}/pair-invite`, asked, SHARED));
    expect(await redeem(invite)).toBe(200);
  });

  test('whoever has copied one invite fills the owner’s queue for no other', async () => {
    const [copied, invite] = [
      await newInvite(service, { needsApproval: true }),
      await newInvite(service, { needsApproval: true }),
    ];
    const thieves = Array.from({ length: 4 }, () => redeem(copied));
    const waiting = () => service.running.approvals.list();
    await until(() => waiting().length >= 2);
    const before = new Set(waiting().map(({ id }) => id));
    const redeemed = redeem(invite);
    const own = await until(() => waiting().find(({ id }) => !before.has(id)));
    service.running.approvals.decide(own.id, 'approved');
    expect(await redeemed).toBe(200);
    for (const { id } of waiting()) service.running.approvals.decide(id, 'denied');
    await Promise.all(thieves);
  });
});

describe('Codes that strangers ask for and guess at', () => {
  test('challenges without end, from the same address, keep nobody from using theirs', async () => {
    await times(FLOOD, () => fetchChallenge(service.url, SHARED));
    expect(await typeCode(await askForCode(SHARED), SHARED)).toBe(200);
  });

  test('wrong codes of one machine keep no other from being paired by a code', async () => {
    const stranger = '127.8.2.1';
    await times(2, async () => guessThrice(await askForCode(stranger), stranger));
    await expect(askForCode(stranger)).rejects.toThrow('hint 6');
    expect(await typeCode(await askForCode('127.8.2.2'), '127.8.2.2')).toBe(200);
  });

  test('wrong codes of many machines end no exchange that goes on, and keep no holder of an invite out', async () => {
    const own = await askForCode('127.8.3.1');
    for (const stranger of ['127.8.3.2', '127.8.3.3', '127.8.3.4'])
      await askForCode(stranger).then((asked) => guessThrice(asked, stranger), String);
    await expect(askForCode('127.8.3.5')).rejects.toThrow('hint 6');
    expect(await typeCode(own, '127.8.3.1')).toBe(200);
    expect(await redeem(await newInvite(service), '127.8.3.2')).toBe(200);
  });
});
