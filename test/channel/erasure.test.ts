/** Keys are overwritten when their time ends: as far as JavaScript goes, in the memory that the code knows of. */
import { describe, expect, test } from 'vitest';
import type { Crypto } from '../../channel/crypto.ts';
import { startSession } from '../../channel/initiator.ts';
import { asCallKey } from '../../channel/keys.ts';
import { HandshakeState } from '../../channel/noise/handshake-state.ts';
import { IKHFS_PSK0 } from '../../channel/noise/pattern.ts';
import { RecordOpener } from '../../channel/record-opener.ts';
import { RecordSealer } from '../../channel/record-sealer.ts';
import {
  answerOf,
  bytes,
  deliver,
  newGateway,
  newKey,
  NOW_MS,
  refusal,
  sealRequest,
  sessionOptions,
  text,
} from './paired.ts';
import { noble, node } from './watched-crypto.ts';

const isErased = (key: Uint8Array): boolean => key.every((byte) => byte === 0);

/** `crypto`, and the very arrays that it was given as keys. */
function keeping(crypto: Crypto): {
  crypto: Crypto;
  cipherKeys: Uint8Array[];
  hmacKeys: Uint8Array[];
  kemKeys: Uint8Array[];
} {
  const [cipherKeys, hmacKeys, kemKeys]: [Uint8Array[], Uint8Array[], Uint8Array[]] = [[], [], []];
  const kept: Crypto = {
    ...crypto,
    hmacSha256(key, message) {
      hmacKeys.push(key);
      return crypto.hmacSha256(key, message);
    },
    aead: {
      seal(key, nonce, associatedData, box) {
        cipherKeys.push(key);
        crypto.aead.seal(key, nonce, associatedData, box);
      },
      open(key, nonce, associatedData, box) {
        cipherKeys.push(key);
        return crypto.aead.open(key, nonce, associatedData, box);
      },
    },
    mlKem768: {
      ...crypto.mlKem768,
      keyPair(seed) {
        const pair = crypto.mlKem768.keyPair(seed);
        kemKeys.push(seed, pair.secretKey);
        return pair;
      },
    },
  };
  return { crypto: kept, cipherKeys, hmacKeys, kemKeys };
}

describe('after a handshake', () => {
  /** Both sides on one keeping provider; message 2 changed if it is to fail. */
  function run(change: (message2: Uint8Array) => Uint8Array) {
    const kept = keeping(noble);
    const gateway = newGateway(kept.crypto);
    const started = startSession(sessionOptions(gateway, gateway.pair(), kept.crypto));
    const message2 = gateway.responder.answerSession(started.message1, NOW_MS);
    const outcome = refusal(() => started.finish(change(message2), NOW_MS));
    return { ...kept, outcome };
  }

  test('all its cipher and KEM keys are overwritten', () => {
    const { outcome, cipherKeys, kemKeys } = run((message2) => message2);
    expect(outcome).toBe('accepted');
    expect(cipherKeys.length).toBeGreaterThan(8);
    expect(cipherKeys.filter((key) => !isErased(key))).toEqual([]);
    expect(kemKeys.map(isErased)).toEqual([true, true]);
  });

  test('that failed, the same', () => {
    const { outcome, cipherKeys, kemKeys } = run((message2) => message2.with(1300, message2[1300]! ^ 1));
    expect(outcome).toBe('handshake_refused');
    expect(cipherKeys.filter((key) => !isErased(key))).toEqual([]);
    expect(kemKeys.map(isErased)).toEqual([true, true]);
  });

  test('nothing more can be done with it', () => {
    const state = new HandshakeState({
      crypto: node,
      pattern: IKHFS_PSK0,
      role: 'initiator',
      prologue: text(''),
      staticKey: newKey(node),
      remoteStaticKey: newKey(node).publicKey,
    });
    expect(() => state.finish()).toThrow(TypeError);
    expect(() => state.finishReading()).toThrow(TypeError);
    expect(() => state.readMessage(text(''))).toThrow(TypeError);
    state.erase();
    expect(() => state.finish()).toThrow(TypeError);
    expect(() => state.writeMessage(text(''))).toThrow(TypeError);
  });
});

describe('the key of a stream', () => {
  const newKeys = () => {
    const key = node.randomBytes(32);
    const copy = () => asCallKey(new Uint8Array(key));
    return { sealing: copy(), opening: copy(), cut: copy(), bad: copy() };
  };

  test('is overwritten after the last record, after a bad one, and after a cut', () => {
    const keys = newKeys();
    const sealer = new RecordSealer(node, keys.sealing);
    const records = [sealer.sealHead(text('h')), sealer.sealData(text('d'), { last: true })];
    expect(isErased(keys.sealing)).toBe(true);
    const opener = new RecordOpener(node, keys.opening);
    expect([...opener.push(records[0]!)]).toHaveLength(1);
    expect(isErased(keys.opening)).toBe(false);
    expect([...opener.push(records[1]!)]).toHaveLength(2);
    expect(isErased(keys.opening)).toBe(true);
    expect(refusal(() => [...new RecordOpener(node, keys.bad).push(bytes(records[1]!))])).toBe('record_refused');
    expect(isErased(keys.bad)).toBe(true);
    expect(refusal(() => new RecordOpener(node, keys.cut).end())).toBe('truncated');
    expect(isErased(keys.cut)).toBe(true);
  });
});

describe('the secrets of a session', () => {
  /** After one call; `end` is what ends the session. */
  function keysAfter(end: (gateway: ReturnType<typeof newGateway>) => void): boolean[] {
    const kept = keeping(noble);
    const gateway = newGateway(kept.crypto);
    const device = gateway.pair();
    const started = startSession(sessionOptions(gateway, device));
    const session = started.finish(gateway.responder.answerSession(started.message1, NOW_MS), NOW_MS);
    const { wire } = sealRequest(session);
    kept.hmacKeys.splice(0);
    answerOf(deliver(gateway, wire)).records.sealAbort(text('{}'));
    expect(kept.hmacKeys.map(isErased)).toEqual([false, false]);
    end(gateway);
    return kept.hmacKeys.map(isErased);
  }

  test('are overwritten when it expires', () =>
    expect(keysAfter(({ responder }) => responder.sweep(NOW_MS + 7_200_000))).toEqual([true, true]));
  test('and when the gateway stops', () =>
    expect(keysAfter(({ responder }) => responder.shutDown())).toEqual([true, true]));
});
