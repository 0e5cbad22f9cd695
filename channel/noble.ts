/**
 * The provider for every platform: the @noble libraries, pure JavaScript. It holds no state and reaches nothing, so the
 * source of randomness is the caller's: `(n) => crypto.getRandomValues(new Uint8Array(n))` wherever there is one.
 */
import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { x25519 } from '@noble/curves/ed25519.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { ml_kem768 } from '@noble/post-quantum/ml-kem.js';
import type { Aead, Crypto, DhKeyPair, Kem } from './crypto.ts';
import { AEAD_TAG_BYTES } from './crypto.ts';
import { asPublicKey } from './keys.ts';

export function nobleCrypto(randomBytes: (length: number) => Uint8Array): Crypto {
  return {
    randomBytes,
    sha256: (message) => sha256(message),
    hmacSha256: (key, message) => hmac(sha256, key, message),
    x25519: dhKeyPair,
    aead,
    mlKem768: nobleMlKem768,
  };
}

function dhKeyPair(secretKey: Uint8Array): DhKeyPair {
  const secret = new Uint8Array(secretKey);
  let erased = false;
  return {
    publicKey: asPublicKey(x25519.getPublicKey(secret)),
    agree(otherPublicKey) {
      if (erased) throw new TypeError('this key pair is erased');
      return orUndefined(() => x25519.getSharedSecret(secret, otherPublicKey));
    },
    erase() {
      secret.fill(0);
      erased = true;
    },
  };
}

const aead: Aead = {
  seal(key, nonce, associatedData, box) {
    chacha20poly1305(key, nonce, associatedData).encrypt(box.subarray(0, -AEAD_TAG_BYTES), box);
  },
  open(key, nonce, associatedData, box) {
    const cipher = chacha20poly1305(key, nonce, associatedData);
    return orUndefined(() => cipher.decrypt(box));
  },
};

/** Also what the node:crypto provider uses where Node has no ML-KEM, and where a known answer is wanted. */
export const nobleMlKem768: Kem = {
  keyPair: (seed) => ml_kem768.keygen(seed),
  encapsulate: (publicKey, m) =>
    orUndefined(() => {
      const { cipherText, sharedSecret } = ml_kem768.encapsulate(publicKey, m);
      return { ciphertext: cipherText, sharedSecret };
    }),
  decapsulate: (ciphertext, secretKey) => ml_kem768.decapsulate(ciphertext, secretKey),
};

/** noble reports what a peer's bytes made impossible by throwing. */
function orUndefined<Value>(compute: () => Value): Value | undefined {
  try {
    return compute();
  } catch {
    return undefined;
  }
}
