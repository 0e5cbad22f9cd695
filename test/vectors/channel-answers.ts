/**
 * What `channel-kat.json` leaves out: both kinds of pairing, and everything that is derived outside a handshake. The
 * inputs are one byte repeated; `channel-answers.json` holds what noble made of them when this was written, so these
 * are nobody else's evidence, but another provider, another platform and another day have to give the same.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { concatBytes, utf8ToBytes } from '../../channel/bytes.ts';
import { derivePairingPsk, startPairingCode } from '../../channel/cpace.ts';
import type { Crypto } from '../../channel/crypto.ts';
import { gatewayIdOf } from '../../channel/gateway-id.ts';
import { startSession } from '../../channel/initiator.ts';
import { deriveInviteKeys } from '../../channel/invite.ts';
import type { Psk } from '../../channel/keys.ts';
import { asInviteSecret, asPsk } from '../../channel/keys.ts';
import type { Purpose } from '../../channel/purpose.ts';
import { deriveRelayTag, routingIdOf } from '../../channel/relay-tag.ts';
import { Responder } from '../../channel/responder.ts';
import { scripted } from '../channel/scripted-crypto.ts';
import type { Outcome } from './outcome.ts';
import { isHex, runRows } from './outcome.ts';

const repeated = (byte: number, length = 32): Uint8Array => new Uint8Array(length).fill(byte);

/** 2026-11-21T00:00:00Z. */
const NOW_MS = 20_778 * 86_400_000;

export function runChannelAnswers(crypto: Crypto, content: unknown): Outcome {
  const computed = computeChannelAnswers(crypto);
  const expected = Object.entries(content as Readonly<Record<string, string>>);
  if (expected.length !== Object.keys(computed).length) throw new RangeError('an answer without a row, or the reverse');
  return runRows(expected.map(([name, hex]) => ({ name, check: () => isHex(computed[name], hex) })));
}

export function computeChannelAnswers(crypto: Crypto): Readonly<Record<string, Uint8Array>> {
  const invite = deriveInviteKeys(crypto, asInviteSecret(repeated(0x21, 16)));
  const routingId = routingIdOf(crypto, repeated(0x22));
  const code = pairWithCode(crypto);
  return {
    gatewayId: gatewayIdOf(crypto, crypto.x25519(repeated(0x12)).publicKey),
    rid: routingId,
    relayTag: deriveRelayTag(crypto, asPsk(repeated(0x18)), { routingId, day: 20_778 }),
    inviteId: invite.inviteId,
    invitePsk: invite.psk,
    inviteTag: invite.relayTag(routingId),
    ...prefixed('invite', pair(crypto, { kind: 'invite', inviteId: invite.inviteId }, invite.psk)),
    codeYa: code.ya,
    codeYb: code.yb,
    codePsk: new Uint8Array(code.psk),
    ...prefixed('discovery', pair(crypto, { kind: 'discovery', challenge: repeated(0x33, 16) }, code.psk)),
  };
}

function pairWithCode(crypto: Crypto): { ya: Uint8Array; yb: Uint8Array; psk: Psk } {
  const gatewayKey = crypto.x25519(repeated(0x12)).publicKey;
  const pairing = { code: '123456', challenge: repeated(0x33, 16), attempt: 1, gatewayKey };
  const device = startPairingCode(scripted(crypto, [repeated(0x31, 64)]), 'initiator', pairing);
  const gateway = startPairingCode(scripted(crypto, [repeated(0x32, 64)]), 'responder', pairing);
  const psk = derivePairingPsk(crypto, device.finish(gateway.share));
  if (bytesToHex(derivePairingPsk(crypto, gateway.finish(device.share))) !== bytesToHex(psk))
    throw new Error('no agreement');
  return { ya: device.share, yb: gateway.share, psk };
}

/** A pairing handshake, one call in its session, and a streamed answer with a sign of life in it. */
function pair(crypto: Crypto, purpose: Exclude<Purpose, { kind: 'session' }>, psk: Psk) {
  const gatewayKey = crypto.x25519(repeated(0x12));
  const started = startSession({
    crypto: scripted(crypto, [repeated(0x13), repeated(0x15, 64)]),
    purpose,
    staticKey: crypto.x25519(repeated(0x11)),
    remoteStaticKey: gatewayKey.publicKey,
    psk,
    hints: { clientVersion: 'test', language: 'en' },
  });
  const responder = new Responder({
    crypto: scripted(crypto, [repeated(0x17, 16), repeated(0x14), repeated(0x16)]),
    staticKey: gatewayKey,
    findPsk: () => undefined,
    boot: 'boot',
    maxBodyBytes: 65_536,
  });
  const message2 = responder.answerPairing({ purpose, psk }, started.message1, NOW_MS);
  const session = started.finish(message2, NOW_MS);
  const call = session.openCall(NOW_MS)!;
  const confirm = utf8ToBytes('{"m":"POST","p":"/pair/confirm","h":[],"bl":0}');
  const request = concatBytes(call.header, call.request.sealHead(confirm, { last: true }));
  const [head] = [...responder.receiveCall(purpose.kind).push(request, NOW_MS)];
  if (head?.type !== 'head') throw new Error('the call was not taken');
  const { header, records } = head.answer;
  const answer = concatBytes(
    header,
    records.sealHead(utf8ToBytes('{"s":200,"h":[],"bl":null}')),
    records.sealData(utf8ToBytes('one'), { padding: 'stream' }),
    records.sealPad(),
    records.sealData(new Uint8Array(300).fill(0x61), { padding: 'stream' }),
    records.sealData(new Uint8Array(0), { padding: 'stream', last: true }),
  );
  return { message1: started.message1, message2, request, answer };
}

function prefixed(prefix: string, values: Readonly<Record<string, Uint8Array>>): Record<string, Uint8Array> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix} ${name}`, value]));
}
