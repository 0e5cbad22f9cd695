/**
 * What the channel has from node:crypto (OpenSSL), which does it five to twenty times faster than pure JavaScript: all
 * primitives but ML-KEM-768. Without any other library, so that it can be tested before anything is served.
 */
import * as openssl from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import type { Aead, Crypto, DhKeyPair } from '../crypto.ts';
import { AEAD_TAG_BYTES } from '../crypto.ts';
import { asPublicKey } from '../keys.ts';

export const randomBytes = (length: number): Uint8Array => openssl.getRandomValues(new Uint8Array(length));

function dhKeyPair(secretKey: Uint8Array): DhKeyPair {
  const imported = importSecretKey(secretKey);
  let privateKey: KeyObject | undefined = imported;
  return {
    publicKey: asPublicKey(rawPublicKey(imported)),
    agree(otherPublicKey) {
      if (privateKey === undefined) throw new TypeError('this key pair is erased');
      return agree(privateKey, otherPublicKey);
    },
    erase() {
      privateKey = undefined;
    },
  };
}

/** RFC 8410 §7: what stands before the bytes of an X25519 secret in a PrivateKeyInfo. */
const PKCS8_HEADER = Buffer.from('302e020100300506032b656e04220420', 'hex');

/** Not as JWK: that wants the public key too, which is not known yet, and Node 26 compares the two. */
function importSecretKey(secretKey: Uint8Array): KeyObject {
  const key = Buffer.concat([PKCS8_HEADER, secretKey]);
  try {
    return openssl.createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  } finally {
    key.fill(0);
  }
}

/** A public key passes as JWK (RFC 8037 §2), which Node imports several times faster than DER. */
function agree(privateKey: KeyObject, otherPublicKey: Uint8Array): Uint8Array | undefined {
  const publicKey = openssl.createPublicKey({ key: jwk({ x: base64url(otherPublicKey) }), format: 'jwk' });
  try {
    return openssl.diffieHellman({ privateKey, publicKey });
  } catch {
    // OpenSSL refuses to derive an all-zero secret, as RFC 7748 §6.1 allows.
    return undefined;
  }
}

function rawPublicKey(privateKey: KeyObject): Uint8Array {
  return Buffer.from(openssl.createPublicKey(privateKey).export({ format: 'jwk' }).x ?? '', 'base64url');
}

function jwk(parts: JsonWebKey): JsonWebKey {
  return { kty: 'OKP', crv: 'X25519', ...parts };
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');
}

const CIPHER = 'chacha20-poly1305';
const CIPHER_OPTIONS = { authTagLength: AEAD_TAG_BYTES };

/** Bytes do as well, and cost Node 24 four times as much. */
const asKey = (bytes: Uint8Array): KeyObject => openssl.createSecretKey(bytes);

const aead: Aead = {
  seal(key, nonce, associatedData, box) {
    const tagAt = box.length - AEAD_TAG_BYTES;
    const cipher = openssl.createCipheriv(CIPHER, asKey(key), nonce, CIPHER_OPTIONS);
    cipher.setAAD(associatedData, { plaintextLength: tagAt });
    box.set(cipher.update(box.subarray(0, tagAt)));
    cipher.final();
    box.set(cipher.getAuthTag(), tagAt);
  },
  open(key, nonce, associatedData, box) {
    if (box.length < AEAD_TAG_BYTES) return undefined;
    const tagAt = box.length - AEAD_TAG_BYTES;
    const decipher = openssl.createDecipheriv(CIPHER, asKey(key), nonce, CIPHER_OPTIONS);
    decipher.setAAD(associatedData, { plaintextLength: tagAt });
    decipher.setAuthTag(box.subarray(tagAt));
    const plaintext = decipher.update(box.subarray(0, tagAt));
    try {
      decipher.final();
    } catch {
      plaintext.fill(0); // not authenticated: nobody may see it
      return undefined;
    }
    return plaintext;
  },
};

export const platformCrypto: Omit<Crypto, 'mlKem768'> = {
  randomBytes,
  sha256: (message) => openssl.hash('sha256', message, 'buffer'),
  hmacSha256: (key, message) => openssl.createHmac('sha256', asKey(key)).update(message).digest(),
  x25519: dhKeyPair,
  aead,
};
