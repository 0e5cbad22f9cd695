import { describe, expect, test } from 'vitest';
import { derivePairingPsk, startCpace, startPairingCode } from '../../channel/cpace.ts';
import type { PairingCode } from '../../channel/cpace.ts';
import { newKey, refusal, text } from './paired.ts';
import { node } from './watched-crypto.ts';

const challenge = node.randomBytes(16);
const gatewayKey = newKey(node).publicKey;
const shown: PairingCode = { code: '042137', challenge, attempt: 0, gatewayKey };

/** Whether the device arrives at the gateway's psk. */
function agrees(typed: Partial<PairingCode>): boolean {
  const device = startPairingCode(node, 'initiator', { ...shown, ...typed });
  const gateway = startPairingCode(node, 'responder', shown);
  const psk = derivePairingPsk(node, device.finish(gateway.share));
  return Buffer.compare(psk, derivePairingPsk(node, gateway.finish(device.share))) === 0;
}

test('the code that was shown leads both to one psk', () => expect(agrees({})).toBe(true));

describe('another psk for', () => {
  test('another code', () => expect(agrees({ code: '042138' })).toBe(false));
  test('another try', () => expect(agrees({ attempt: 1 })).toBe(false));
  test('another request', () => expect(agrees({ challenge: node.randomBytes(16) })).toBe(false));
  test('another gateway, whatever it calls itself', () =>
    expect(agrees({ gatewayKey: newKey(node).publicKey })).toBe(false));
  test('the same role twice, as when shares are reflected', () => {
    const one = startPairingCode(node, 'initiator', shown);
    const two = startPairingCode(node, 'initiator', shown);
    expect(Buffer.compare(one.finish(two.share), two.finish(one.share))).not.toBe(0);
  });
});

test('every run has a share of its own', () => {
  const [one, two] = [startPairingCode(node, 'initiator', shown), startPairingCode(node, 'initiator', shown)];
  expect(Buffer.compare(one.share, two.share)).not.toBe(0);
});

test('what is no code is refused before anything is sent', () => {
  for (const code of ['', '12345', '1234567', '12345a', ' 12345', '１２３４５６']) {
    expect(() => startPairingCode(node, 'initiator', { ...shown, code })).toThrow(RangeError);
  }
});

test('what is no element of the group, or the neutral one, is refused', () => {
  for (const share of [new Uint8Array(32), new Uint8Array(31), new Uint8Array(32).fill(0xff), node.randomBytes(33)]) {
    const side = startPairingCode(node, 'initiator', shown);
    expect(refusal(() => side.finish(share))).toBe('handshake_refused');
    expect(() => side.finish(share)).toThrow(TypeError);
  }
});

test('long inputs keep their lengths apart', () => {
  const shared = (password: Uint8Array, channelId: Uint8Array): string => {
    const input = { password, channelId, sessionId: new Uint8Array(0) };
    const responder = startCpace(node, { ...input, role: 'responder' });
    return Buffer.from(startCpace(node, { ...input, role: 'initiator' }).finish(responder.share)).toString('hex');
  };
  expect(shared(text('a'.repeat(200)), text('b'.repeat(300)))).toMatch(/^[0-9a-f]{128}$/u);
});
