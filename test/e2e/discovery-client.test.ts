/** The SDK's side of pairing by a code: with its gateway, with others that play it, and with somebody in between. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { formatBase64url } from '../../channel/base64url.ts';
import { derivePairingPsk, startPairingCode, type CpaceSide } from '../../channel/cpace.ts';
import { decodeEnvelope, encodeEnvelope, type Envelope } from '../../channel/envelope.ts';
import { HINT } from '../../channel/hint.ts';
import { startSession } from '../../channel/initiator.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { Responder } from '../../channel/responder.ts';
import { connect, deviceEntry } from '../../clients/sdk/index.ts';
import { describeGateway, pairByCode } from '../../clients/sdk/pair-by-code.ts';
import { standBetween, type Answered, type Between, type Meddle } from '../support/between.ts';
import { newStaticKey } from '../support/raw-device.ts';
import { codesAt, fakeChallenge, jsonBytes, wrong } from '../support/raw-discovery.ts';
import { codeOf } from '../support/sealed-client.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';
import { watchedStorage } from '../support/watched-storage.ts';

const crypto = gatewayCrypto('node');
let home: string;
let service: ServiceHere;

beforeEach(async () => {
  home = await temporaryHome();
  service = await startServiceHere(home);
  stored.clear();
  writes.length = 0;
});
afterEach(async () => {
  await service.stop();
  await removeHome(home);
});

const { storage, stored, writes } = watchedStorage();
const shownCode = () => until(() => codesAt(service).at(-1));
const device = { name: 'laptop', platform: 'linux' };
type AskCode = (tryNumber: number) => Promise<string>;

const pairAt = (url: string, askCode: AskCode = shownCode) => pairByCode(url, { device, storage, askCode });
const devices = async () => (await service.running.identity.openPairings()).devices.list();
const deny = async () => service.running.approvals.decide(service.running.approvals.list()[0]!.id, 'denied');

/** On failure neither side has anything of it. */
async function expectNothing(): Promise<void> {
  expect([writes, await devices()]).toEqual([[], []]);
}

const between = (meddle: Meddle): Promise<Between> => standBetween(service.url, meddle);

/** A gateway that is none, and answers what it likes. */
const fake = (answer: (path: string, body: Buffer) => Uint8Array): Promise<Between> =>
  between(async ({ path, body }) => ({ status: 200, body: answer(path, body) }));

describe('the digits that the gateway shows', () => {
  test('make a device that can call, and that alone is stored', async () => {
    const asked: unknown[] = [];
    const found = await describeGateway(service.url);
    const paired = await pairByCode(`${service.url}/`, {
      device,
      storage,
      askCode: async (tryNumber, gateway) => {
        asked.push([tryNumber, gateway]);
        return Array.from(await shownCode()).join(' ');
      },
    });
    expect(asked).toEqual([[1, found]]);
    expect(paired).toMatchObject({ gatewayId: found.gatewayId, urls: [service.url], gatewayName: found.name });
    expect((await service.cli('identity', 'show')).stdout).toContain(found.gatewayId);
    expect(writes).toEqual([deviceEntry(paired.gatewayId)]);
    expect((await connect(paired).fetch('/v1/models')).status).toBe(200);
    expect(await devices()).toMatchObject([{ id: paired.deviceId, ...device }]);
  });

  test('are asked for again while they are wrong, and are right at the third', async () => {
    const tries: number[] = [];
    await pairAt(service.url, async (tryNumber) => {
      tries.push(tryNumber);
      const code = await shownCode();
      return tryNumber === 3 ? code : wrong(code, tryNumber);
    });
    expect(tries).toEqual([1, 2, 3]);
    expect(writes).toHaveLength(1);
  });

  test.each([
    ['code_wrong', 'wrong three times', async (n: number) => wrong(await shownCode(), n)],
    ['code_denied', 'denied', () => shownCodeAfter(deny)],
    ['code_expired', 'of a service that was restarted', () => shownCodeAfter(restart)],
  ] as const)('end as %s where they are %s', async (expected, _, askCode) => {
    expect(await codeOf(pairAt(service.url, askCode))).toBe(expected);
    await expectNothing();
  });

  /** Read before, typed after. */
  async function shownCodeAfter(change: () => Promise<unknown>): Promise<string> {
    const code = await shownCode();
    await change();
    return code;
  }

  /** On the same port, as its device knows it. */
  async function restart(): Promise<void> {
    const { port } = service.running;
    await service.stop();
    service = await startServiceHere(home, { 'server.port': port });
  }

  test('are not six digits: the caller’s own mistake, and no try', async () => {
    expect(await codeOf(pairAt(service.url, async () => '12345'))).toBeInstanceOf(RangeError);
    await expectNothing();
  });

  test('are not typed: what the caller throws ends it, and so does its signal', async () => {
    const given = new Error('given up');
    expect(await codeOf(pairAt(service.url, () => Promise.reject(given)))).toBe(given);
    await deny();
    const leaving = new AbortController();
    const askCode = () => new Promise<string>(() => leaving.abort(given));
    expect(await codeOf(pairByCode(service.url, { device, storage, askCode, signal: leaving.signal }))).toBe(given);
    await expectNothing();
  });

  test('are shown once to each device at a time', async () => {
    const first = pairAt(service.url, () => new Promise(() => undefined));
    await shownCode();
    expect(await codeOf(pairAt(service.url))).toBe('code_busy');
    void first;
    await expectNothing();
  });

  test('are not shown where the owner does not want it, or where no gateway is', async () => {
    const page = await fake(() => Buffer.from('<html>a printer</html>'));
    expect(await codeOf(pairAt(page.url))).toBe('code_not_offered');
    expect(await codeOf(describeGateway('file:///etc/passwd'))).toBe('code_not_offered');
    expect(await codeOf(describeGateway('http://127.0.0.1:1'))).toBe('offline');
    await service.stop();
    service = await startServiceHere(home, { 'pairing.discovery': false });
    expect(await codeOf(pairAt(service.url))).toBe('code_not_offered');
    await expectNothing();
  });

  test('are asked for too often', async () => {
    for (let count = 0; count < 6; count++) await describeGateway(service.url);
    expect(await codeOf(describeGateway(service.url))).toBe('busy');
  });
});

describe('a broken network', () => {
  /** Loses the answer to the first message of this kind, which has arrived. */
  const losing = (kind: number, times = 1) => {
    let left = times;
    return between(async (passing, forward) => {
      const answer = await forward(passing);
      if (passing.body[1] !== kind || left-- <= 0) return answer;
      return { status: 200, body: answer.body.subarray(0, 0) };
    });
  };

  test('that loses the answer to the proof costs no try', async () => {
    const cut = await between(async (passing, forward) => forward(passing));
    let left = 1;
    const fetchOnce: typeof fetch = async (url, init) => {
      const answer = await fetch(url, init);
      const isProof = init?.body instanceof Uint8Array && init.body[1] === 0x22;
      if (isProof && left-- > 0) throw new TypeError('the network is gone');
      return answer;
    };
    const tries: number[] = [];
    const askCode = async (tryNumber: number) => {
      tries.push(tryNumber);
      return tryNumber === 1 ? wrong(await shownCode()) : shownCode();
    };
    await pairByCode(cut.url, { device, storage, askCode, fetch: (url, init) => fetchOnce(url, init) });
    expect(tries).toEqual([1, 2]);
    // The lost one, again, the second try.
    expect(cut.seen.filter(({ body }) => body[1] === 0x22)).toHaveLength(3);
  });

  test('that loses the last answer loses nothing: it comes again', async () => {
    const cut = await losing(0x03);
    const paired = await pairAt(cut.url);
    expect(await devices()).toMatchObject([{ id: paired.deviceId }]);
  });

  test('that answers nothing ends it', async () => {
    expect(await codeOf(pairAt((await losing(0x22, 9)).url))).toBe('incompatible');
    await deny();
    await expectNothing();
  });
});

describe('somebody in between', () => {
  /** Changes the challenge that the device gets. */
  const swapGatewayKey = (key: Uint8Array, answer: Answered): Answered => ({
    ...answer,
    body: jsonBytes({
      ...(JSON.parse(Buffer.from(answer.body).toString()) as object),
      gatewayKey: formatBase64url(key),
    }),
  });

  test('who swaps the gateway’s key is found out', async () => {
    const own = newStaticKey();
    const man = await between(async (passing, forward) => {
      const answer = await forward(passing);
      return passing.method === 'GET' ? swapGatewayKey(own.publicKey, answer) : answer;
    });
    expect(await codeOf(pairAt(man.url))).toBe('code_wrong');
    await expectNothing();
  });

  /** Plays the gateway to the device, with a code of his own; what he says is well-formed. */
  function player(code: string) {
    const staticKey = crypto.x25519(crypto.randomBytes(32));
    const responder = new Responder({
      crypto,
      staticKey,
      findPsk: () => undefined,
      boot: 'man',
      maxBodyBytes: 65_536,
    });
    let attempt = 0;
    let side: CpaceSide;
    const start = (challenge: Uint8Array) => {
      const pairing = { code, challenge, attempt: attempt++, gatewayKey: staticKey.publicKey };
      side = startPairingCode(crypto, 'responder', pairing);
      return encodeEnvelope({ kind: 'discoveryOpened', share: side.share });
    };
    return {
      publicKey: staticKey.publicKey,
      start,
      /** Guesses, and says that the guess was right whether or not it was. */
      prove({ challenge, share, noise }: Extract<Envelope, { kind: 'discoveryProve' }>) {
        const psk = derivePairingPsk(crypto, side.finish(share));
        try {
          const purpose = { kind: 'discovery', challenge: new Uint8Array(challenge) } as const;
          const message2 = responder.answerPairing({ purpose, psk }, noise, Date.now());
          return encodeEnvelope({ kind: 'discoveryProved', noise: message2 });
        } catch {
          return undefined;
        }
      },
    };
  }

  test('who swaps the gateway’s key and plays it learns nothing by three guesses', async () => {
    const man = player('123456');
    let guesses = 0;
    const one = await between(async (passing, forward) => {
      const answer = await forward(passing);
      if (passing.method === 'GET') return swapGatewayKey(man.publicKey, answer);
      const envelope = decodeEnvelope(passing.body);
      if (envelope.kind === 'discoveryOpen') return { status: 200, body: man.start(envelope.challenge) };
      if (envelope.kind !== 'discoveryProve') throw new Error(envelope.kind);
      guesses += 1;
      expect(man.prove(envelope)).toBeUndefined();
      return { status: 200, body: man.start(envelope.challenge) };
    });
    expect(await codeOf(pairAt(one.url, async () => wrong('123456', 7)))).toBe('code_wrong');
    expect(guesses).toBe(3);
    await expectNothing();
  });

  /** The device's proof replaced by one of his own, with a key of his own and the best that he has for a code. */
  const proofOfHisOwn = (
    envelope: Extract<Envelope, { kind: 'discoveryProve' }>,
    key: Uint8Array,
    share: Uint8Array,
  ) => {
    const side = startPairingCode(crypto, 'initiator', {
      code: '123456',
      challenge: envelope.challenge,
      attempt: 0,
      gatewayKey: key as never,
    });
    const psk = derivePairingPsk(crypto, side.finish(share));
    const purpose = { kind: 'discovery', challenge: new Uint8Array(envelope.challenge) } as const;
    const staticKey = newStaticKey();
    const { message1 } = startSession({
      crypto,
      purpose,
      staticKey,
      remoteStaticKey: key as never,
      psk,
      hints: { clientVersion: 'man' },
    });
    return { ours: side.share, message1 };
  };

  test.each(['the proof whole', 'the message with the device’s key alone', 'the share alone'])(
    'who swaps %s pairs nobody',
    async (what) => {
      let gatewayKey = new Uint8Array();
      let share = new Uint8Array();
      const one = await between(async (passing, forward) => {
        if (passing.method === 'GET') {
          const answer = await forward(passing);
          const { gatewayKey: text } = JSON.parse(Buffer.from(answer.body).toString()) as { gatewayKey: string };
          gatewayKey = Buffer.from(text, 'base64url');
          return answer;
        }
        const envelope = decodeEnvelope(passing.body);
        if (envelope.kind === 'discoveryOpen') {
          const answer = await forward(passing);
          share = new Uint8Array(answer.body.subarray(2));
          return answer;
        }
        if (envelope.kind !== 'discoveryProve') throw new Error(envelope.kind);
        const { ours, message1 } = proofOfHisOwn(envelope, gatewayKey, share);
        const body = encodeEnvelope({
          ...envelope,
          share: what.startsWith('the message') ? envelope.share : ours,
          noise: what.startsWith('the share') ? envelope.noise : message1,
        });
        return forward({ ...passing, body: Buffer.from(body) });
      });
      expect(await codeOf(pairAt(one.url))).toBe('code_wrong');
      await expectNothing();
    },
  );

  test('who plays gateway and device at once, with keys of his own, pairs neither', async () => {
    const man = player('123456');
    let realKey = new Uint8Array();
    let share = new Uint8Array();
    const toGateway: number[] = [];
    const one = await between(async (passing, forward) => {
      const answer = passing.body[1] === 0x22 ? undefined : await forward(passing);
      if (passing.method === 'GET') {
        const { gatewayKey } = JSON.parse(Buffer.from(answer!.body).toString()) as { gatewayKey: string };
        realKey = Buffer.from(gatewayKey, 'base64url');
        return swapGatewayKey(man.publicKey, answer!);
      }
      const envelope = decodeEnvelope(passing.body);
      if (envelope.kind === 'discoveryOpen') {
        share = new Uint8Array(answer!.body.subarray(2));
        return { status: 200, body: man.start(envelope.challenge) };
      }
      if (envelope.kind !== 'discoveryProve') throw new Error(envelope.kind);
      const { ours, message1 } = proofOfHisOwn(envelope, realKey, share);
      const body = Buffer.from(encodeEnvelope({ ...envelope, share: ours, noise: message1 }));
      toGateway.push((await forward({ ...passing, body })).body[1]!);
      return { status: 200, body: man.prove(envelope) ?? man.start(envelope.challenge) };
    });
    expect(await codeOf(pairAt(one.url))).toBe('code_wrong');
    expect(toGateway).not.toContain(0x23);
    await expectNothing();
  });

  test('who renames the device is found out when it says its name', async () => {
    const one = await between(async (passing, forward) => {
      const isOpen = passing.body[1] === 0x20;
      const envelope = isOpen ? decodeEnvelope(passing.body) : undefined;
      if (envelope?.kind !== 'discoveryOpen') return forward(passing);
      const about = jsonBytes({ name: 'the tablet', platform: 'ios' });
      return forward({ ...passing, body: Buffer.from(encodeEnvelope({ ...envelope, about })) });
    });
    expect(await codeOf(pairAt(one.url))).toBe('incompatible');
    await expectNothing();
  });

  test('who lies about how it ended is not believed: nothing is stored', async () => {
    for (const [hint, code] of [
      [HINT.challengeOver, 'code_expired'],
      [HINT.pairingDenied, 'code_denied'],
      [HINT.codeRefused, 'code_wrong'],
      [HINT.rateLimited, 'busy'],
      [HINT.unknownSession, 'incompatible'],
    ] as const) {
      const one = await between(async (passing, forward) =>
        passing.body[1] === 0x22
          ? { status: 200, body: encodeEnvelope({ kind: 'hint', code: hint }) }
          : forward(passing),
      );
      expect(await codeOf(pairAt(one.url))).toBe(code);
      await deny();
    }
    await expectNothing();
  });
});

describe('a fake gateway', () => {
  const anyKey = () => newStaticKey().publicKey;
  const anyShare = () =>
    startPairingCode(crypto, 'responder', {
      code: '000000',
      challenge: new Uint8Array(16),
      attempt: 0,
      gatewayKey: anyKey(),
    }).share;

  test.each([
    [
      'says that the code was right',
      'gateway_unproved',
      encodeEnvelope({ kind: 'discoveryProved', noise: crypto.randomBytes(1408) }),
    ],
    ['sends a share that is none', 'gateway_unproved', undefined],
    ['never has enough', 'code_wrong', encodeEnvelope({ kind: 'discoveryOpened', share: anyShare() })],
    [
      'answers with something else',
      'incompatible',
      encodeEnvelope({ kind: 'sessionAnswer', noise: new Uint8Array(9) }),
    ],
    ['answers with more than any answer', 'offline', crypto.randomBytes(9000)],
  ])('that %s gets three guesses at most, and nothing is stored', async (_, expected, answer) => {
    const key = anyKey();
    const asked: number[] = [];
    const gateway = await fake((path, body) => {
      if (path === '/pair/challenge') return jsonBytes(fakeChallenge(key));
      const share = answer === undefined ? new Uint8Array(32) : anyShare();
      return body[1] === 0x22 && answer !== undefined ? answer : encodeEnvelope({ kind: 'discoveryOpened', share });
    });
    const outcome = codeOf(pairAt(gateway.url, async (tryNumber) => (asked.push(tryNumber), '123456')));
    expect(await outcome).toBe(expected);
    expect(asked.length).toBeLessThanOrEqual(3);
    await expectNothing();
  });

  test.each([
    ['a key that can’t be agreed with', { gatewayKey: formatBase64url(new Uint8Array(32)) }, 'gateway_unproved'],
    ['a short challenge', { nonce: 'AAAA' }, 'code_not_offered'],
    ['another version', { v: 2 }, 'code_not_offered'],
    ['a name that commands the terminal', { name: '\u001b[2Jhome' }, 'code_not_offered'],
  ])('with %s', async (_, change, expected) => {
    const gateway = await fake((path) =>
      path === '/pair/challenge'
        ? jsonBytes({ ...fakeChallenge(anyKey()), ...change })
        : encodeEnvelope({ kind: 'discoveryOpened', share: anyShare() }),
    );
    expect(await codeOf(pairAt(gateway.url, async () => '123456'))).toBe(expected);
    await expectNothing();
  });

  test('never gets to see the code, or anything that another guess could be tried on without the device', async () => {
    const key = anyKey();
    const gateway = await fake((path) =>
      path === '/pair/challenge'
        ? jsonBytes(fakeChallenge(key))
        : encodeEnvelope({ kind: 'discoveryOpened', share: anyShare() }),
    );
    await codeOf(pairAt(gateway.url, async () => '918273'));
    const wire = Buffer.concat(gateway.seen.map(({ body }) => body)).toString('latin1');
    expect(wire).not.toContain('918273');
    // Two proofs of one code have nothing in common.
    const [one, other] = gateway.seen.filter(({ body }) => body[1] === 0x22).map(({ body }) => body.subarray(18));
    expect(one!.subarray(0, 32).equals(other!.subarray(0, 32))).toBe(false);
  });
});
