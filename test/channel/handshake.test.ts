import { describe, expect, test } from 'vitest';
import type { Crypto } from '../../channel/crypto.ts';
import { startSession } from '../../channel/initiator.ts';
import { asPsk, asPublicKey } from '../../channel/keys.ts';
import {
  deliver,
  HINTS,
  newGateway,
  newKey,
  newSession,
  NOW_MS,
  refusal,
  sealRequest,
  sessionOptions,
} from './paired.ts';
import { LONG, seededInteger, THOROUGH, times } from './sampling.ts';
import { node, PROVIDERS } from './watched-crypto.ts';

/** Every byte with one bit flipped; when thorough every bit. */
function* flips(length: number): Generator<{ at: number; mask: number }> {
  const pick = seededInteger(`flips ${length}`);
  for (let at = 0; at < length; at++) {
    const masks = THOROUGH ? [1, 2, 4, 8, 16, 32, 64, 128] : [1 << pick(8)];
    for (const mask of masks) yield { at, mask };
  }
}

function flipped(message: Uint8Array, { at, mask }: { at: number; mask: number }): Uint8Array {
  const copy = new Uint8Array(message);
  copy[at]! ^= mask;
  return copy;
}

/** The top bit of an X25519 key is ignored by design (RFC 7748 §5), but e is hashed as sent, so even that is seen. */
test('message 1 with any bit flipped is refused and leaves no session', LONG, () => {
  const gateway = newGateway();
  const { message1 } = startSession(sessionOptions(gateway, gateway.pair()));
  expect(message1).toHaveLength(1552);
  const accepted = [...flips(message1.length)].filter(
    (flip) => refusal(() => gateway.responder.answerSession(flipped(message1, flip), NOW_MS)) !== 'handshake_refused',
  );
  expect(accepted).toEqual([]);
  expect(gateway.responder.counts('session').pending).toBe(0);
});

test('message 2 with any bit flipped is refused', LONG, () => {
  const gateway = newGateway(node, { pendingPerKey: Infinity, pending: Infinity });
  const device = gateway.pair();
  const accepted = [...flips(1408)].filter((flip) => {
    const started = startSession(sessionOptions(gateway, device));
    const message2 = gateway.responder.answerSession(started.message1, NOW_MS);
    gateway.responder.sweep(NOW_MS + 60_000);
    expect(message2).toHaveLength(1408);
    return refusal(() => started.finish(flipped(message2, flip), NOW_MS)) !== 'handshake_refused';
  });
  expect(accepted).toEqual([]);
});

test('every truncation of either message, and a byte too many, is refused', () => {
  const gateway = newGateway(node, { pendingPerKey: Infinity, pending: Infinity });
  const device = gateway.pair();
  const { message1 } = startSession(sessionOptions(gateway, device));
  for (let length = 0; length < message1.length; length += times(7, 1)) {
    expect(refusal(() => gateway.responder.answerSession(message1.subarray(0, length), NOW_MS))).toBe(
      'handshake_refused',
    );
  }
  expect(refusal(() => gateway.responder.answerSession(new Uint8Array(65_536), NOW_MS))).toBe('handshake_refused');
  for (const length of [0, 31, 32, 1135, 1136, 1151, 1152, 1407, 1409]) {
    const started = startSession(sessionOptions(gateway, device));
    const message2 = new Uint8Array(length);
    message2.set(gateway.responder.answerSession(started.message1, NOW_MS).subarray(0, length));
    expect(refusal(() => started.finish(message2, NOW_MS))).toBe('handshake_refused');
  }
});

describe('refused:', () => {
  const gateway = newGateway();
  const device = gateway.pair();
  const answer = (options: Partial<Parameters<typeof startSession>[0]>): string =>
    refusal(() => {
      const started = startSession({ ...sessionOptions(gateway, device), ...options });
      started.finish(gateway.responder.answerSession(started.message1, NOW_MS), NOW_MS);
    });

  test('a stranger', () => expect(answer({ staticKey: newKey(node) })).toBe('handshake_refused'));
  test('a device with another psk', () => expect(answer({ psk: asPsk(new Uint8Array(32)) })).toBe('handshake_refused'));
  test('a greeting for another gateway', () =>
    expect(answer({ remoteStaticKey: newKey(node).publicKey })).toBe('handshake_refused'));
  test('a greeting for another purpose', () =>
    expect(answer({ purpose: { kind: 'invite', inviteId: new Uint8Array(16) } })).toBe('handshake_refused'));
  test('an ephemeral key of small order', () => {
    const message = new Uint8Array(1552);
    expect(refusal(() => gateway.responder.answerSession(message, NOW_MS))).toBe('handshake_refused');
  });
  test('a gateway key of small order, by the device itself', () =>
    expect(answer({ remoteStaticKey: asPublicKey(new Uint8Array(32)) })).toBe('handshake_refused'));
  test('a revoked device', () => {
    const revoked = gateway.pair();
    gateway.forget(revoked);
    expect(answer({ staticKey: revoked.staticKey, psk: revoked.psk })).toBe('handshake_refused');
  });
});

test('a stranger costs one Diffie-Hellman and no KEM', () => {
  const counted = { agreements: 0, encapsulations: 0 };
  const gateway = newGateway(counting(node, counted));
  const options = { ...sessionOptions(gateway, gateway.pair()), staticKey: newKey(node) };
  const { message1 } = startSession(options);
  expect(refusal(() => gateway.responder.answerSession(message1, NOW_MS))).toBe('handshake_refused');
  expect(counted).toEqual({ agreements: 1, encapsulations: 0 });
});

function counting(crypto: Crypto, counted: { agreements: number; encapsulations: number }): Crypto {
  return {
    ...crypto,
    x25519(secretKey) {
      const pair = crypto.x25519(secretKey);
      const agree = (other: Uint8Array): Uint8Array | undefined => {
        counted.agreements++;
        return pair.agree(other);
      };
      return { ...pair, agree };
    },
    mlKem768: {
      ...crypto.mlKem768,
      encapsulate(publicKey, m) {
        counted.encapsulations++;
        return crypto.mlKem768.encapsulate(publicKey, m);
      },
      encapsulateFresh(publicKey) {
        counted.encapsulations++;
        return crypto.mlKem768.encapsulateFresh?.(publicKey);
      },
    },
  };
}

test('message 2 is taken once', () => {
  const gateway = newGateway();
  const started = startSession(sessionOptions(gateway, gateway.pair()));
  const message2 = gateway.responder.answerSession(started.message1, NOW_MS);
  started.finish(message2, NOW_MS);
  expect(() => started.finish(message2, NOW_MS)).toThrow(TypeError);
});

test('the terms arrive as they were given', () => {
  const gateway = newGateway();
  const { terms } = newSession(gateway, gateway.pair());
  expect(terms).toEqual({
    sessionId: terms.sessionId,
    expiresAfterMs: 7_200_000,
    idleAfterMs: 1_800_000,
    rekeyAfterMs: 3_600_000,
    maxBodyBytes: 1 << 20,
    callNumbers: 4096,
    boot: 'boot-1',
    timeMs: NOW_MS,
  });
});

describe.each(PROVIDERS)('initiator on %s', (_initiatorName, initiatorCrypto) => {
  test.each(PROVIDERS)('responder on %s', LONG, (_responderName, responderCrypto) => {
    const gateway = newGateway(responderCrypto);
    const device = gateway.pair();
    // Four combinations; of the handshakes, the two that cross have the most to show.
    const count = initiatorCrypto === responderCrypto ? times(5, 250) : times(20, 5000);
    for (let i = 0; i < count; i++) {
      const options = { ...sessionOptions(gateway, device, initiatorCrypto), hints: { ...HINTS, language: `de-${i}` } };
      const started = startSession(options);
      const session = started.finish(gateway.responder.answerSession(started.message1, NOW_MS), NOW_MS);
      if (i % 10 > 0) continue;
      expect(deliver(gateway, sealRequest(session).wire).map(({ type }) => type)).toEqual(['head', 'data', 'end']);
    }
  });
});
