/** Pairing by a code, as devices do it that behave and devices that do not. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { encodeEnvelope } from '../../channel/envelope.ts';
import { HINT } from '../../channel/hint.ts';
import { findPairingGrant } from '../../identity/pairing.ts';
import {
  exchange,
  newStaticKey,
  pairRaw,
  rawSession,
  request,
  sendCall,
  textOf,
  type RawAnswer,
} from '../support/raw-device.ts';
import {
  ask,
  codesAt,
  confirm,
  fetchChallenge,
  getChallenge,
  open,
  prove,
  rawDescription,
  wrong,
  type RawChallenge,
} from '../support/raw-discovery.ts';
import { newInvite } from '../support/invites.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

let home: string;
let service: ServiceHere;

beforeEach(async () => {
  home = await temporaryHome();
  service = await startServiceHere(home);
});
afterEach(async () => {
  await service.stop();
  await removeHome(home);
  vi.useRealTimers();
});

const PHONE = '127.2.0.1';
const STRANGER = '127.2.0.2';
const devices = async () => (await service.running.identity.openPairings()).devices;
const names = async () => (await devices()).list().map(({ name }) => name);
const errorOf = (answer: RawAnswer) => [
  answer.head?.status,
  (JSON.parse(textOf(answer)) as { error: { code: string } }).error.code,
];
const waiting = () => service.running.approvals.list();
const theCode = () => codesAt(service).at(-1)!;

/** A request that the owner sees, and its code. */
async function begin(from = PHONE) {
  const challenge = await fetchChallenge(service.url, from);
  const { share } = await open(service.url, challenge, from);
  return { challenge, share: share!, code: theCode() };
}

/** Up to the session that the code made. */
async function proved(from = PHONE, staticKey = newStaticKey()) {
  const { challenge, share, code } = await begin(from);
  const proof = prove(challenge, { code, share }, staticKey);
  const { noise } = await ask(service.url, proof.envelope, from);
  return { challenge, proof, code, session: proof.finish(noise!) };
}

const tryCode = (challenge: RawChallenge, share: Uint8Array, code: string, attempt = 0) =>
  ask(service.url, prove(challenge, { code, attempt, share }).envelope, PHONE);

describe('a code', () => {
  test('pairs the device that it was typed on', async () => {
    const staticKey = newStaticKey();
    const { challenge, session } = await proved(PHONE, staticKey);
    expect(waiting()).toMatchObject([
      { summary: 'pair a device that calls itself "raw device" ("test"), from 127.2.0.1, for everything' },
    ]);
    expect(await names()).toEqual([]);
    const answer = await confirm(service.url, session);
    expect(answer.head?.status).toBe(200);
    expect(await names()).toEqual(['raw device']);
    expect(waiting()).toEqual([]);
    const device = { staticKey, gatewayKey: challenge.gatewayKey, grant: findPairingGrant(answer.body)! };
    const called = await sendCall(
      `${service.url}/secure/call`,
      await rawSession(service.url, device),
      request('GET', '/v1/models'),
    );
    expect(called.head?.status).toBe(200);
    expect((await devices()).list()).toMatchObject([{ scope: 'master', lastPath: 'lan' }]);
  });

  test('is six digits, another each time, and never leaves the gateway', async () => {
    const seen: string[] = [];
    for (const from of ['127.2.1.1', '127.2.1.2', '127.2.1.3']) {
      const challenge = await fetchChallenge(service.url, from);
      const reply = await open(service.url, challenge, from);
      expect(Object.keys(reply)).toEqual(['status', 'share']);
      seen.push(theCode());
    }
    expect(seen.every((code) => /^\d{6}$/.test(code))).toBe(true);
    expect(new Set(seen).size).toBe(3);
    const { stdout } = await service.cli('approvals');
    expect(stdout).toContain(Array.from(seen[0]!).join(' '));
  });

  test('can be wrong twice: the third try is one with it', async () => {
    const { challenge, share, code } = await begin();
    const second = await tryCode(challenge, share, wrong(code));
    const third = await tryCode(challenge, second.share!, wrong(code, 2), 1);
    expect(new Set([share, second.share!, third.share!].map((one) => Buffer.from(one).toString('hex'))).size).toBe(3);
    const proof = prove(challenge, { code, attempt: 2, share: third.share! });
    const { noise } = await ask(service.url, proof.envelope, PHONE);
    expect((await confirm(service.url, proof.finish(noise!))).head?.status).toBe(200);
  });

  test('is guessed at ten times an hour, by whomever; then nobody can ask for one', async () => {
    const wrongTries = async (from: string) => {
      const { challenge, share, code } = await begin(from);
      let last = share;
      for (const attempt of [0, 1, 2]) {
        const { envelope } = prove(challenge, { code: wrong(code, attempt + 1), attempt, share: last });
        last = (await ask(service.url, envelope, from)).share ?? last;
      }
    };
    for (const from of ['127.3.0.1', '127.3.0.2', '127.3.0.3', '127.3.0.4']) await wrongTries(from);
    const challenge = await fetchChallenge(service.url, PHONE);
    expect(await open(service.url, challenge, PHONE)).toEqual({ status: 429, hint: HINT.rateLimited });
    expect(waiting()).toEqual([]);
    // An invite opens the channel server all the same.
    await pairRaw(service.url, await newInvite(service));
  });

  test('is over when it was wrong three times, also for who knows it then', async () => {
    const { challenge, share, code } = await begin();
    let last = share;
    for (const attempt of [0, 1]) last = (await tryCode(challenge, last, wrong(code, attempt + 1), attempt)).share!;
    expect(await tryCode(challenge, last, wrong(code, 3), 2)).toEqual({ status: 403, hint: HINT.codeRefused });
    expect(waiting()).toEqual([]);
    expect(await tryCode(challenge, last, code, 2)).toEqual({ status: 403, hint: HINT.codeRefused });
    expect(await names()).toEqual([]);
  });

  test('is for the try whose share it was proved with', async () => {
    const { challenge, share, code } = await begin();
    const { share: second } = await tryCode(challenge, share, wrong(code));
    // The first share again, and the second one as if it were the first.
    expect((await tryCode(challenge, share, code, 0)).share).toBeDefined();
    expect(await tryCode(challenge, second!, code, 0)).toEqual({ status: 403, hint: HINT.codeRefused });
  });

  test('is no other try when a proof is repeated whose answer was lost', async () => {
    const { challenge, share, code } = await begin();
    const wrongProof = prove(challenge, { code: wrong(code), share }).envelope;
    const first = await ask(service.url, wrongProof, PHONE);
    for (let count = 0; count < 5; count++) expect(await ask(service.url, wrongProof, PHONE)).toEqual(first);
    const proof = prove(challenge, { code, attempt: 1, share: first.share! });
    const right = await ask(service.url, proof.envelope, PHONE);
    expect(await ask(service.url, proof.envelope, STRANGER)).toEqual(right);
    expect((await confirm(service.url, proof.finish(right.noise!))).head?.status).toBe(200);
  });

  test.each([
    ['no element of the group', new Uint8Array(32).fill(255)],
    ['the neutral one', new Uint8Array(32)],
  ])('costs a try where the share is %s', async (_, Ya) => {
    const { challenge, share, code } = await begin();
    const { envelope } = prove(challenge, { code, share });
    envelope.set(Ya, 18);
    expect((await ask(service.url, envelope, PHONE)).share).toBeDefined();
    expect((await tryCode(challenge, share, code)).share).toBeDefined();
    expect(await tryCode(challenge, share, code)).toMatchObject({ hint: HINT.codeRefused });
  });

  test('that the owner denies is over at once, whatever the device knows by then', async () => {
    const { challenge, share, code } = await begin();
    const { id } = waiting()[0]!;
    expect((await service.cli('approve', id)).stderr).toContain('code');
    await service.cli('deny', id);
    expect(await tryCode(challenge, share, code)).toEqual({ status: 403, hint: HINT.pairingDenied });
    const late = await proved(STRANGER);
    await service.cli('deny', waiting()[0]!.id);
    expect(errorOf(await confirm(service.url, late.session))).toEqual([403, 'pairing_denied']);
    expect(await names()).toEqual([]);
  });

  test('gives the same device the same answer again, until the device is revoked', async () => {
    const { session } = await proved();
    const first = textOf(await confirm(service.url, session));
    expect(textOf(await confirm(service.url, session))).toBe(first);
    expect(await names()).toHaveLength(1);
    await (await devices()).revoke((await devices()).list()[0]!.id);
    expect(errorOf(await confirm(service.url, session))).toEqual([408, 'approval_expired']);
    expect(await names()).toHaveLength(1);
  });

  test('pairs what the owner was shown, and nothing that calls itself otherwise', async () => {
    const { session } = await proved();
    const renamed = { ...rawDescription, name: 'your own laptop' };
    expect(errorOf(await confirm(service.url, session, renamed))).toEqual([400, 'bad_request']);
    expect(await names()).toEqual([]);
    expect((await confirm(service.url, session)).head?.status).toBe(200);
  });

  test('is good for the agent that the owner chose', async () => {
    await service.stop();
    service = await startServiceHere(home, { 'pairing.defaultAgent': 2 });
    const { session } = await proved();
    expect(waiting()[0]?.summary).toContain('for agent 2');
    await confirm(service.url, session);
    expect((await devices()).list()).toMatchObject([{ agentIndex: 2, scope: expect.stringMatching(/^0x/) }]);
  });
});

describe('a challenge', () => {
  test('says who is here, all of it unproved', async () => {
    const { status, body } = await getChallenge(service.url, PHONE);
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        v: 1,
        nonce: expect.stringMatching(/^[\w-]{22}$/),
        gatewayKey: expect.stringMatching(/^[\w-]{43}$/),
        name: expect.any(String),
        expiresIn: 120,
      },
    });
  });

  test('of the device’s own choice is none', async () => {
    const challenge = { id: new Uint8Array(16).fill(7) };
    expect(await open(service.url, challenge, PHONE)).toEqual({ status: 410, hint: HINT.challengeOver });
    const { gatewayKey } = await fetchChallenge(service.url, PHONE);
    expect(await tryCode({ ...challenge, gatewayKey }, (await begin(STRANGER)).share, '000000')).toEqual({
      status: 410,
      hint: HINT.challengeOver,
    });
  });

  test('is for one request, and no other comes with it', async () => {
    const { challenge, share, code } = await begin();
    expect(await open(service.url, challenge, PHONE)).toMatchObject({ hint: HINT.challengeOver });
    expect(await open(service.url, challenge, STRANGER)).toMatchObject({ hint: HINT.challengeOver });
    expect(waiting()).toHaveLength(1);
    const proof = prove(challenge, { code, share });
    const { noise } = await ask(service.url, proof.envelope, PHONE);
    // Another proof by who knows the code, too.
    expect(await tryCode(challenge, share, code)).toMatchObject({ hint: HINT.challengeOver });
    await confirm(service.url, proof.finish(noise!));
    expect(await open(service.url, challenge, PHONE)).toMatchObject({ hint: HINT.challengeOver });
    expect(await tryCode(challenge, share, code)).toMatchObject({ hint: HINT.challengeOver });
  });

  test('that nobody asked with is proved by nothing', async () => {
    const { share } = await begin(STRANGER);
    const challenge = await fetchChallenge(service.url, PHONE);
    expect(await tryCode(challenge, share, '123456')).toMatchObject({ hint: HINT.challengeOver });
  });

  test('dies with the process, and so does what was proved with it', async () => {
    const { challenge, session } = await proved();
    const unused = await fetchChallenge(service.url, PHONE);
    await service.stop();
    service = await startServiceHere(home);
    expect(await open(service.url, unused, PHONE)).toMatchObject({ hint: HINT.challengeOver });
    expect(await open(service.url, challenge, PHONE)).toMatchObject({ hint: HINT.challengeOver });
    expect(await confirm(service.url, session)).toMatchObject({ outerStatus: 401, hint: HINT.unknownSession });
    expect(await names()).toEqual([]);
  });

  test('may be asked for as often as anybody likes: it is kept only when somebody asks the owner with it', async () => {
    const kept = await begin();
    const first = await fetchChallenge(service.url, STRANGER);
    for (let count = 0; count < 300; count++) await fetchChallenge(service.url, STRANGER);
    expect((await open(service.url, first, STRANGER)).share).toBeDefined();
    const proof = prove(kept.challenge, kept);
    expect((await ask(service.url, proof.envelope, PHONE)).noise).toBeDefined();
  });

  test('with any other bit in it is none', async () => {
    const { id } = await fetchChallenge(service.url, PHONE);
    for (let bit = 0; bit < 8 * id.length; bit += 1) {
      const other = Uint8Array.from(id, (byte, at) => (at === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte));
      expect(await open(service.url, { id: other }, PHONE)).toEqual({ status: 410, hint: HINT.challengeOver });
    }
    expect((await open(service.url, { id }, PHONE)).share).toBeDefined();
  });
});

describe('after two minutes', () => {
  beforeEach(async () => {
    await service.stop();
    vi.useFakeTimers({ toFake: ['Date'] });
    service = await startServiceHere(home);
  });
  const later = (ms: number) => vi.setSystemTime(Date.now() + ms);

  test('a challenge is none', async () => {
    const challenge = await fetchChallenge(service.url, PHONE);
    later(120_000);
    expect(await open(service.url, challenge, PHONE)).toEqual({ status: 410, hint: HINT.challengeOver });
  });

  test('the right code is none', async () => {
    const { challenge, share, code } = await begin();
    later(119_999);
    const early = await tryCode(challenge, share, wrong(code));
    later(1);
    expect(await tryCode(challenge, early.share!, code, 1)).toEqual({ status: 410, hint: HINT.challengeOver });
  });

  test('what was proved cannot be confirmed, and a paired device gets its answer no more', async () => {
    const { session } = await proved();
    const paired = await proved(STRANGER);
    expect((await confirm(service.url, paired.session)).head?.status).toBe(200);
    // A call, so that the session is one that lasts.
    await sendCall(`${service.url}/pair`, session, request('GET', '/v1/models'));
    later(120_000);
    expect(errorOf(await confirm(service.url, session))).toEqual([408, 'approval_expired']);
    expect(errorOf(await confirm(service.url, paired.session))).toEqual([408, 'approval_expired']);
    expect(await names()).toHaveLength(1);
  });
});

describe('strangers', () => {
  test('are one request each, however often they ask', async () => {
    await begin();
    for (let count = 0; count < 4; count++) {
      const challenge = await fetchChallenge(service.url, PHONE);
      expect(await open(service.url, challenge, PHONE)).toEqual({ status: 429, hint: HINT.tooManyPairings });
    }
    expect(waiting()).toHaveLength(1);
  });

  test('from everywhere are three that the owner sees, and not in the way of an invite', async () => {
    const replies = await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const from = `127.4.0.${index + 1}`;
        return open(service.url, await fetchChallenge(service.url, from), from);
      }),
    );
    expect(replies.filter(({ share }) => share !== undefined)).toHaveLength(3);
    expect(replies.filter(({ hint }) => hint === HINT.tooManyPairings)).toHaveLength(47);
    expect(waiting()).toHaveLength(3);
    const pairing = pairRaw(service.url, await newInvite(service, { needsApproval: true }));
    const approval = await until(() => waiting().find(({ code }) => code === undefined));
    service.running.approvals.decide(approval.id, 'approved');
    await pairing;
  });

  test('at one address cannot make more than ten lines a minute in the audit log', async () => {
    const hints: (number | undefined)[] = [];
    const from = '127.5.0.1';
    for (let count = 0; count < 12; count++) {
      const { hint } = await open(service.url, await fetchChallenge(service.url, from), from);
      hints.push(hint);
      for (const { id } of waiting()) service.running.approvals.decide(id, 'denied');
    }
    expect(hints).toEqual(
      [...Array<undefined>(10), HINT.rateLimited, HINT.rateLimited].map((hint) => hint ?? undefined),
    );
  });

  test('that pair side by side get each what their own code says', async () => {
    const [one, other] = [await begin('127.6.0.1'), await begin('127.6.0.2')];
    expect((await tryCode(one.challenge, one.share, other.code)).share).toBeDefined();
    // The share of another request under the challenge of one's own.
    const crossed = prove(other.challenge, { code: one.code, share: one.share });
    expect((await ask(service.url, crossed.envelope, '127.6.0.2')).share).toBeDefined();
    const third = await begin('127.6.0.3');
    const proof = prove(third.challenge, third);
    const { noise } = await ask(service.url, proof.envelope, '127.6.0.3');
    expect((await confirm(service.url, proof.finish(noise!))).head?.status).toBe(200);
    expect(waiting()).toHaveLength(2);
    expect(await names()).toHaveLength(1);
  });

  test('that say nothing sensible are told so', async () => {
    const hintOf = async (bytes: Uint8Array) => (await exchange(`${service.url}/pair`, bytes, PHONE)).bytes[3];
    const challenge = new Uint8Array(16);
    const about = Buffer.from('{"name":"a\\nb","platform":"x"}');
    expect(await hintOf(new Uint8Array())).toBe(HINT.malformed);
    expect(await hintOf(encodeEnvelope({ kind: 'discoveryOpen', challenge, about }))).toBe(HINT.malformed);
    expect(await hintOf(encodeEnvelope({ kind: 'sessionRequest', noise: challenge }))).toBe(HINT.malformed);
    expect((await exchange(`${service.url}/pair`, new Uint8Array(65_537), PHONE)).status).toBe(413);
  });
});

describe('the way of a code', () => {
  test('is no way to anything else, nor is another way one for it', async () => {
    const { session } = await proved();
    expect(await sendCall(`${service.url}/secure/call`, session, request('GET', '/v1/models'))).toMatchObject({
      hint: HINT.unknownSession,
    });
    expect(await sendCall(`${service.url}/pair-invite`, session, request('GET', '/v1/models'))).toMatchObject({
      hint: HINT.unknownSession,
    });
    expect(errorOf(await sendCall(`${service.url}/pair`, session, request('GET', '/v1/models')))).toEqual([
      403,
      'forbidden',
    ]);
    const device = await rawSession(service.url, await pairRaw(service.url, await newInvite(service)));
    expect(await sendCall(`${service.url}/pair`, device, request('GET', '/v1/models'))).toMatchObject({
      hint: HINT.unknownSession,
    });
  });

  test('is in the same network: nothing comes through a relay, a proxy or a tunnel', async () => {
    const { channelServer } = service.running;
    const relay = {
      transport: 'relay',
      clientKey: 'relay',
      gone: new AbortController().signal,
      cut: () => {},
    } as const;
    await expect(channelServer.challenge(relay)).rejects.toMatchObject({ hint: HINT.notOffered });
    const { challenge, session } = await proved();
    async function* bytes() {
      yield encodeEnvelope({ kind: 'discoveryOpen', challenge: challenge.id, about: Buffer.from('{}') });
    }
    const answer = await channelServer.handle('discovery', relay, bytes()).next();
    expect((answer.value as Uint8Array)[3]).toBe(HINT.notOffered);
    expect(await getChallenge(service.url, PHONE, { 'x-forwarded-for': '192.0.2.1' })).toMatchObject({ status: 404 });
    expect((await confirm(service.url, session)).head?.status).toBe(200);
  });

  test('can be closed', async () => {
    await service.stop();
    service = await startServiceHere(home, { 'pairing.discovery': false });
    expect(await getChallenge(service.url, PHONE)).toMatchObject({ status: 404 });
    const challenge = { id: new Uint8Array(16) };
    expect(await open(service.url, challenge, PHONE)).toEqual({ status: 404, hint: HINT.notOffered });
  });
});
