/**
 * Who can pass for whom with which stolen keys. gs: the gateway's static key; cs: a device's; psk: what the two share.
 * What the attacker lacks he guesses, and what follows from what he has he uses: Diffie-Hellman has two ends.
 */
import { describe, expect, test } from 'vitest';
import type { DhKeyPair } from '../../channel/crypto.ts';
import { greet, initiate } from '../../channel/handshake.ts';
import type { Psk } from '../../channel/keys.ts';
import { asPsk, asSessionId } from '../../channel/keys.ts';
import type { SessionTerms } from '../../channel/payload.ts';
import { startSession } from '../../channel/initiator.ts';
import { deliver, newGateway, newKey, NOW_MS, refusal, sealRequest, sessionOptions } from './paired.ts';
import { scripted } from './scripted-crypto.ts';
import { node, watchedProviders } from './watched-crypto.ts';

type Secret = 'gs' | 'cs' | 'psk';

/** As the threat model says, and no more. */
const MATRIX: readonly { stolen: readonly Secret[]; asDevice: boolean; asGateway: boolean }[] = [
  { stolen: [], asDevice: false, asGateway: false },
  { stolen: ['gs'], asDevice: false, asGateway: false },
  { stolen: ['cs'], asDevice: false, asGateway: false },
  { stolen: ['psk'], asDevice: false, asGateway: false },
  { stolen: ['gs', 'cs'], asDevice: false, asGateway: false },
  // A stolen backup of the gateway: it can be played to its devices, but they can't be played to it (se needs cs).
  { stolen: ['gs', 'psk'], asDevice: false, asGateway: true },
  // A stolen device.
  { stolen: ['cs', 'psk'], asDevice: true, asGateway: false },
  { stolen: ['gs', 'cs', 'psk'], asDevice: true, asGateway: true },
];

describe.each(MATRIX)('who stole $stolen', ({ stolen, asDevice, asGateway }) => {
  const gateway = newGateway();
  const device = gateway.pair();
  const has = (secret: Secret): boolean => stolen.includes(secret);
  const psk: Psk = has('psk') ? device.psk : asPsk(node.randomBytes(32));
  const deviceKey = playedBy(device.staticKey, has('cs'), { peer: gateway.staticKey, hasPeer: has('gs') });
  const gatewayKey = playedBy(gateway.staticKey, has('gs'), { peer: device.staticKey, hasPeer: has('cs') });

  test(`${asDevice ? 'can' : "can't"} call the gateway as the device`, () => {
    const started = startSession({ ...sessionOptions(gateway, device), staticKey: deviceKey, psk });
    const outcome = refusal(() => {
      const message2 = gateway.responder.answerSession(started.message1, NOW_MS);
      deliver(gateway, sealRequest(started.finish(message2, NOW_MS)).wire);
    });
    expect(outcome === 'accepted').toBe(asDevice);
    expect(gateway.responder.counts('session').confirmed).toBe(asDevice ? 1 : 0);
  });

  test(`${asGateway ? 'can' : "can't"} answer the device as the gateway`, () => {
    const started = startSession(sessionOptions(gateway, device));
    const outcome = refusal(() => {
      const options = { crypto: node, purpose: { kind: 'session' }, staticKey: gatewayKey } as const;
      const message2 = greet(options, started.message1).accept(psk).answer(terms()).message;
      started.finish(message2, NOW_MS);
    });
    expect(outcome === 'accepted').toBe(asGateway);
  });
});

/** A key pair with the public key of the victim, which agrees as far as the attacker can compute it. */
function playedBy(
  victim: DhKeyPair,
  isStolen: boolean,
  { peer, hasPeer }: { peer: DhKeyPair; hasPeer: boolean },
): DhKeyPair {
  if (isStolen) return victim;
  const guess = newKey(node);
  const agree = (other: Uint8Array): Uint8Array | undefined =>
    // DH(victim, peer) is as well DH(peer, victim): with the one static key the other can be played to its owner (KCI).
    hasPeer && Buffer.compare(other, peer.publicKey) === 0 ? peer.agree(victim.publicKey) : guess.agree(other);
  return { publicKey: victim.publicKey, agree, erase() {} };
}

function terms(): SessionTerms {
  return {
    sessionId: asSessionId(node.randomBytes(16)),
    expiresAfterMs: 0,
    idleAfterMs: 0,
    rekeyAfterMs: 0,
    maxBodyBytes: 0,
    callNumbers: 0,
    boot: '',
    timeMs: 0,
  };
}

describe('a recorded session, read later by who stole all three', () => {
  const gateway = newGateway();
  const device = gateway.pair();
  const draws = [node.randomBytes(32), node.randomBytes(64)];

  /**
   * The thief plays the recording again, as the device, with the one-time keys that he assumes. He seals once more what
   * was sealed then, so each time is on a ledger of its own.
   */
  function replay(assumed: readonly Uint8Array[]): string {
    const crypto = scripted(watchedProviders('thief').node, assumed);
    return refusal(() => initiate({ ...sessionOptions(gateway, device), crypto }).finish(message2));
  }

  const started = startSession({ ...sessionOptions(gateway, device), crypto: scripted(node, draws) });
  const message2 = gateway.responder.answerSession(started.message1, NOW_MS);

  test('opens with both one-time keys', () => expect(replay(draws)).toBe('accepted'));
  test('stays closed without e, which is X25519', () =>
    expect(replay([node.randomBytes(32), draws[1]!])).toBe('handshake_refused'));
  test('stays closed without e1, which is ML-KEM-768, even to who breaks X25519', () =>
    expect(replay([draws[0]!, node.randomBytes(64)])).toBe('handshake_refused'));
});
