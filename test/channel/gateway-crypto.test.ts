import * as openssl from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Crypto, Kem } from '../../channel/crypto.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';

describe.each(['node', 'noble'] as const)('%s', (choice) => {
  const sound = gatewayCrypto(choice);

  const flipped = (bytes: Uint8Array): Uint8Array => bytes.with(0, bytes[0]! ^ 0x10);

  const encapsulate = (publicKey: Uint8Array) => sound.mlKem768.encapsulate(publicKey, sound.randomBytes(32));
  const encapsulated = encapsulate(sound.mlKem768.keyPair(new Uint8Array(64).fill(0x13)).publicKey)!;
  const fresh = (encapsulateFresh: NonNullable<Kem['encapsulateFresh']>): Partial<Crypto> => ({
    mlKem768: { ...sound.mlKem768, encapsulateFresh },
  });

  /** One fault each, and the known answer that it makes wrong. */
  const FAULTS: readonly (readonly [what: string, faulty: Partial<Crypto>, answer: string])[] = [
    ['a hash', { sha256: (message) => flipped(sound.sha256(message)) }, 'SHA-256'],
    ['an HMAC', { hmacSha256: (key, message) => flipped(sound.hmacSha256(key, message)) }, 'HMAC-SHA-256'],
    ['a public key', { x25519: (secret) => sound.x25519(flipped(secret)) }, 'X25519'],
    [
      'a cipher that ignores what it is not shown',
      { aead: { ...sound.aead, seal: (key, nonce, _ad, box) => sound.aead.seal(key, nonce, new Uint8Array(0), box) } },
      'ChaCha20-Poly1305',
    ],
    [
      'a cipher that opens forgeries',
      {
        aead: {
          ...sound.aead,
          open: (key, nonce, ad, box) => sound.aead.open(key, nonce, ad, box) ?? box.subarray(16),
        },
      },
      'ChaCha20-Poly1305',
    ],
    [
      'an agreement with a key of small order',
      {
        x25519(secret) {
          const pair = sound.x25519(secret);
          return { ...pair, agree: (other) => pair.agree(other) ?? new Uint8Array(32) };
        },
      },
      'X25519',
    ],
    [
      'an encapsulation',
      {
        mlKem768: {
          ...sound.mlKem768,
          encapsulate(publicKey, m) {
            return sound.mlKem768.encapsulate(publicKey, flipped(m));
          },
        },
      },
      'ML-KEM-768',
    ],
    [
      'an encapsulation that nobody can open',
      fresh(() => ({ ...encapsulated, sharedSecret: new Uint8Array(32) })),
      'encapsulation',
    ],
    ['an encapsulation that is the same each time', fresh(() => encapsulated), 'encapsulation'],
    ['an encapsulation that takes no key', fresh(() => undefined), 'encapsulation'],
    ['an encapsulation to what is no key', fresh((publicKey) => encapsulate(publicKey) ?? encapsulated), 'refusals'],
  ];

  test.each(FAULTS)('%s that is wrong stops the gateway', (_what, faulty, answer) => {
    expect(() => gatewayCrypto(choice, { ...sound, ...faulty })).toThrow(`${answer} fails its self-test`);
  });

  test('a provider that throws stops it too', () => {
    const broken = (): never => {
      throw new Error('not supported');
    };
    expect(() => gatewayCrypto(choice, { ...sound, sha256: broken })).toThrow('fails its self-test');
  });

  test('an erased key agrees on nothing', () => {
    const pair = sound.x25519(sound.randomBytes(32));
    pair.erase();
    expect(() => pair.agree(sound.x25519(sound.randomBytes(32)).publicKey)).toThrow(TypeError);
  });

  test('the caller may overwrite the secret that made a key pair', () => {
    const secret = sound.randomBytes(32);
    const [pair, same] = [sound.x25519(secret), sound.x25519(secret)];
    secret.fill(0);
    const other = sound.x25519(sound.randomBytes(32)).publicKey;
    expect(pair.agree(other)).toEqual(same.agree(other));
  });
});

test('where Node has ML-KEM, the gateway uses it', () => {
  const hasMlKem = 'encapsulate' in openssl && process.versions.openssl >= '3.5';
  expect(gatewayCrypto('node').mlKem768.encapsulateFresh !== undefined).toBe(hasMlKem);
  expect(gatewayCrypto('noble').mlKem768.encapsulateFresh).toBeUndefined();
});
