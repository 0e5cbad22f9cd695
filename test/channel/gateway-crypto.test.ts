import { describe, expect, test } from 'vitest';
import type { Crypto } from '../../channel/crypto.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';

describe.each(['node', 'noble'] as const)('%s', (choice) => {
  const sound = gatewayCrypto(choice);

  const flipped = (bytes: Uint8Array): Uint8Array => bytes.with(0, bytes[0]! ^ 0x10);

  /** One fault each, and the known answer that it makes wrong. */
  const FAULTS: readonly (readonly [what: string, faulty: Partial<Crypto>, answer: string])[] = [
    ['a hash', { sha256: (message) => flipped(sound.sha256(message)) }, 'message 1'],
    ['an HMAC', { hmacSha256: (key, message) => flipped(sound.hmacSha256(key, message)) }, 'message 1'],
    ['a public key', { x25519: (secret) => sound.x25519(flipped(secret)) }, 'message 1'],
    [
      'a cipher that ignores what it is not shown',
      { aead: { ...sound.aead, seal: (key, nonce, _ad, box) => sound.aead.seal(key, nonce, new Uint8Array(0), box) } },
      'message 1',
    ],
    [
      'a cipher that opens forgeries',
      {
        aead: {
          ...sound.aead,
          open: (key, nonce, ad, box) => sound.aead.open(key, nonce, ad, box) ?? box.subarray(16),
        },
      },
      'refusals',
    ],
    [
      'an agreement with a key of small order',
      {
        x25519(secret) {
          const pair = sound.x25519(secret);
          return { ...pair, agree: (other) => pair.agree(other) ?? new Uint8Array(32) };
        },
      },
      'refusals',
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
      'message 2',
    ],
  ];

  test.each(FAULTS)('%s that is wrong stops the gateway', (_what, faulty, answer) => {
    expect(() => gatewayCrypto(choice, { ...sound, ...faulty })).toThrow(
      `the ${choice} cryptography of this machine gives a wrong answer (${answer}); the gateway won't start`,
    );
  });

  test('a provider that throws stops it too', () => {
    const broken = (): never => {
      throw new Error('not supported');
    };
    expect(() => gatewayCrypto(choice, { ...sound, sha256: broken })).toThrow("the gateway won't start");
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
