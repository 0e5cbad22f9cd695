/** Somebody who is between a device and the gateway whose code is typed on it, or plays one of them. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { formatBase64url } from '../../channel/base64url.ts';
import { derivePairingPsk, startPairingCode, type CpaceSide } from '../../channel/cpace.ts';
import { decodeEnvelope, encodeEnvelope, type Envelope } from '../../channel/envelope.ts';
import { HINT } from '../../channel/hint.ts';
import { startSession } from '../../channel/initiator.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { Responder } from '../../channel/responder.ts';
import type { Answered } from '../support/between.ts';
import { CodePairing } from '../support/code-pairing.ts';
import { newStaticKey } from '../support/raw-device.ts';
import { wrong } from '../support/raw-discovery.ts';
import { codeOf } from '../support/sealed-client.ts';

const crypto = gatewayCrypto('node');

let lan: CodePairing;

beforeEach(async () => {
  lan = await CodePairing.start();
});
afterEach(() => lan.end());

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const fakeChallenge = (gatewayKey: Uint8Array) => ({
  v: 1,
  nonce: formatBase64url(crypto.randomBytes(16)),
  gatewayKey: formatBase64url(gatewayKey),
  name: 'home',
  expiresIn: 120,
});

describe('somebody in between', () => {
  /** Changes the challenge that the device gets. */
  const swapGatewayKey = (key: Uint8Array, answer: Answered): Answered => ({
    ...answer,
    body: json({ ...(JSON.parse(Buffer.from(answer.body).toString()) as object), gatewayKey: formatBase64url(key) }),
  });

  test('who swaps the gateway’s key is found out', async () => {
    const own = newStaticKey();
    const man = await lan.between(async (passing, forward) => {
      const answer = await forward(passing);
      return passing.method === 'GET' ? swapGatewayKey(own.publicKey, answer) : answer;
    });
    expect(await codeOf(lan.pairAt(man.url))).toBe('code_wrong');
    await lan.expectNothing();
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
    const one = await lan.between(async (passing, forward) => {
      const answer = await forward(passing);
      if (passing.method === 'GET') return swapGatewayKey(man.publicKey, answer);
      const envelope = decodeEnvelope(passing.body);
      if (envelope.kind === 'discoveryOpen') return { status: 200, body: man.start(envelope.challenge) };
      if (envelope.kind !== 'discoveryProve') return answer;
      guesses += 1;
      expect(man.prove(envelope)).toBeUndefined();
      return { status: 200, body: man.start(envelope.challenge) };
    });
    expect(await codeOf(lan.pairAt(one.url, async () => wrong('123456', 7)))).toBe('code_wrong');
    expect(guesses).toBe(3);
    await lan.expectNothing();
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
      const one = await lan.between(async (passing, forward) => {
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
        if (envelope.kind !== 'discoveryProve') return forward(passing);
        const { ours, message1 } = proofOfHisOwn(envelope, gatewayKey, share);
        const body = encodeEnvelope({
          ...envelope,
          share: what.startsWith('the message') ? envelope.share : ours,
          noise: what.startsWith('the share') ? envelope.noise : message1,
        });
        return forward({ ...passing, body: Buffer.from(body) });
      });
      expect(await codeOf(lan.pairAt(one.url))).toBe('code_wrong');
      await lan.expectNothing();
    },
  );

  test('who plays gateway and device at once, with keys of his own, pairs neither', async () => {
    const man = player('123456');
    let realKey = new Uint8Array();
    let share = new Uint8Array();
    const toGateway: number[] = [];
    const one = await lan.between(async (passing, forward) => {
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
      if (envelope.kind !== 'discoveryProve') return answer!;
      const { ours, message1 } = proofOfHisOwn(envelope, realKey, share);
      const body = Buffer.from(encodeEnvelope({ ...envelope, share: ours, noise: message1 }));
      toGateway.push((await forward({ ...passing, body })).body[1]!);
      return { status: 200, body: man.prove(envelope) ?? man.start(envelope.challenge) };
    });
    expect(await codeOf(lan.pairAt(one.url))).toBe('code_wrong');
    expect(toGateway).not.toContain(0x23);
    await lan.expectNothing();
  });

  test('who renames the device is found out when it says its name', async () => {
    const one = await lan.between(async (passing, forward) => {
      const isOpen = passing.body[1] === 0x20;
      const envelope = isOpen ? decodeEnvelope(passing.body) : undefined;
      if (envelope?.kind !== 'discoveryOpen') return forward(passing);
      const about = json({ name: 'the tablet', platform: 'ios' });
      return forward({ ...passing, body: Buffer.from(encodeEnvelope({ ...envelope, about })) });
    });
    expect(await codeOf(lan.pairAt(one.url))).toBe('incompatible');
    await lan.expectNothing();
  });

  test('who lies about how it ended is not believed: nothing is stored', async () => {
    for (const [hint, code] of [
      [HINT.challengeOver, 'code_expired'],
      [HINT.pairingDenied, 'code_denied'],
      [HINT.codeRefused, 'code_wrong'],
      [HINT.rateLimited, 'busy'],
      [HINT.unknownSession, 'incompatible'],
    ] as const) {
      const one = await lan.between(async (passing, forward) =>
        passing.body[1] === 0x22
          ? { status: 200, body: encodeEnvelope({ kind: 'hint', code: hint }) }
          : forward(passing),
      );
      expect(await codeOf(lan.pairAt(one.url))).toBe(code);
      lan.expectNoQuestion();
    }
    await lan.expectNothing();
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
    const gateway = await lan.fake((path, body) => {
      if (path === '/pair/challenge') return json(fakeChallenge(key));
      const share = answer === undefined ? new Uint8Array(32) : anyShare();
      return body[1] === 0x22 && answer !== undefined ? answer : encodeEnvelope({ kind: 'discoveryOpened', share });
    });
    const outcome = codeOf(lan.pairAt(gateway.url, async (tryNumber) => (asked.push(tryNumber), '123456')));
    expect(await outcome).toBe(expected);
    expect(asked.length).toBeLessThanOrEqual(3);
    await lan.expectNothing();
  });

  test.each([
    ['a key that can’t be agreed with', { gatewayKey: formatBase64url(new Uint8Array(32)) }, 'gateway_unproved'],
    ['a short challenge', { nonce: 'AAAA' }, 'code_not_offered'],
    ['another version', { v: 2 }, 'code_not_offered'],
    ['a name that commands the terminal', { name: '\u001b[2Jhome' }, 'code_not_offered'],
  ])('with %s', async (_, change, expected) => {
    const gateway = await lan.fake((path) =>
      path === '/pair/challenge'
        ? json({ ...fakeChallenge(anyKey()), ...change })
        : encodeEnvelope({ kind: 'discoveryOpened', share: anyShare() }),
    );
    expect(await codeOf(lan.pairAt(gateway.url, async () => '123456'))).toBe(expected);
    await lan.expectNothing();
  });

  test('never gets to see the code, or anything that another guess could be tried on without the device', async () => {
    const key = anyKey();
    const gateway = await lan.fake((path) =>
      path === '/pair/challenge'
        ? json(fakeChallenge(key))
        : encodeEnvelope({ kind: 'discoveryOpened', share: anyShare() }),
    );
    await codeOf(lan.pairAt(gateway.url, async () => '918273'));
    const wire = Buffer.concat(gateway.seen.map(({ body }) => body)).toString('latin1');
    expect(wire).not.toContain('918273');
    // Two proofs of one code have nothing in common.
    const [one, other] = gateway.seen.filter(({ body }) => body[1] === 0x22).map(({ body }) => body.subarray(18));
    expect(one!.subarray(0, 32).equals(other!.subarray(0, 32))).toBe(false);
  });
});
