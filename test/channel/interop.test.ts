/**
 * The code under our handshakes against another implementation, in both roles: noise-c, written in C by others and
 * compiled to WebAssembly. It knows neither psk modifiers nor hybrid handshakes, so what is compared is Noise_IK; what
 * they add to it is held against published vectors.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { NoiseC } from 'noise-c.wasm';
import createNoise from 'noise-c.wasm';
import { beforeAll, describe, expect, test } from 'vitest';
import { CipherState } from '../../channel/noise/cipher-state.ts';
import { HandshakeState } from '../../channel/noise/handshake-state.ts';
import { patternOf } from '../vectors/noise-patterns.ts';
import { text } from './paired.ts';
import { times } from './sampling.ts';
import { PROVIDERS } from './watched-crypto.ts';

const PROTOCOL = 'Noise_IK_25519_ChaChaPoly_SHA256';
const PROLOGUE = text('svc-secure-v1');
const NO_AD = new Uint8Array(0);

let noiseC: NoiseC;
beforeAll(async () => {
  // Given as bytes, since it would try to fetch the file's path as a URL first.
  const wasmBinary = await readFile(createRequire(import.meta.url).resolve('noise-c.wasm/src/noise-c.wasm'));
  noiseC = await new Promise((resolve) => createNoise({ wasmBinary }, resolve));
});

describe.each(PROVIDERS)('on %s', (_name, crypto) => {
  const newSecrets = () => {
    const [deviceSecret, gatewaySecret] = [crypto.randomBytes(32), crypto.randomBytes(32)];
    return { deviceSecret, gatewaySecret, device: crypto.x25519(deviceSecret), gateway: crypto.x25519(gatewaySecret) };
  };
  const ours = { crypto, pattern: patternOf(PROTOCOL), prologue: PROLOGUE };

  test('we initiate, noise-c responds', () => {
    for (let i = 0; i < times(20, 500); i++) {
      const { gatewaySecret, device, gateway } = newSecrets();
      const initiator = new HandshakeState({
        ...ours,
        role: 'initiator',
        staticKey: device,
        remoteStaticKey: gateway.publicKey,
      });
      const responder = new noiseC.HandshakeState(PROTOCOL, noiseC.constants.NOISE_ROLE_RESPONDER);
      responder.Initialize(PROLOGUE, gatewaySecret, null, null);
      expect(Buffer.from(responder.ReadMessage(initiator.writeMessage(text('one')), true)).toString()).toBe('one');
      expect(Buffer.from(initiator.readMessage(responder.WriteMessage(text('two')))).toString()).toBe('two');
      expect(Buffer.compare(responder.GetRemotePublicKey(), device.publicKey)).toBe(0);
      const theirHash = responder.GetHandshakeHash();
      const [send, receive] = responder.Split();
      const { initiatorKey, responderKey, handshakeHash } = initiator.finish();
      expect(Buffer.compare(handshakeHash, theirHash)).toBe(0);
      const sealed = new CipherState(crypto, initiatorKey).seal(NO_AD, text('three'));
      expect(Buffer.from(receive.DecryptWithAd(NO_AD, sealed)).toString()).toBe('three');
      const answer = new CipherState(crypto, responderKey).open(NO_AD, send.EncryptWithAd(NO_AD, text('four')));
      expect(Buffer.from(answer).toString()).toBe('four');
      for (const cipher of [send, receive]) cipher.free();
    }
  });

  test('noise-c initiates, we respond', () => {
    for (let i = 0; i < times(20, 500); i++) {
      const { deviceSecret, device, gateway } = newSecrets();
      const initiator = new noiseC.HandshakeState(PROTOCOL, noiseC.constants.NOISE_ROLE_INITIATOR);
      initiator.Initialize(PROLOGUE, deviceSecret, gateway.publicKey, null);
      const responder = new HandshakeState({ ...ours, role: 'responder', staticKey: gateway });
      expect(Buffer.from(responder.readMessage(initiator.WriteMessage(text('one')))).toString()).toBe('one');
      expect(Buffer.compare(responder.remoteStaticKey!, device.publicKey)).toBe(0);
      expect(Buffer.from(initiator.ReadMessage(responder.writeMessage(text('two')), true)).toString()).toBe('two');
      const theirHash = initiator.GetHandshakeHash();
      const [send, receive] = initiator.Split();
      const { initiatorKey, responderKey, handshakeHash } = responder.finish();
      expect(Buffer.compare(handshakeHash, theirHash)).toBe(0);
      const opened = new CipherState(crypto, initiatorKey).open(NO_AD, send.EncryptWithAd(NO_AD, text('three')));
      expect(Buffer.from(opened).toString()).toBe('three');
      const sealed = new CipherState(crypto, responderKey).seal(NO_AD, text('four'));
      expect(Buffer.from(receive.DecryptWithAd(NO_AD, sealed)).toString()).toBe('four');
      for (const cipher of [send, receive]) cipher.free();
    }
  });
});
