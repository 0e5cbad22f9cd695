/**
 * ML-KEM-768 for the gateway: encapsulation by OpenSSL where Node has it (24.7 and newer), all else by noble. The
 * gateway does nothing but encapsulate, and OpenSSL can't be given the `m` of a known answer.
 */
import * as openssl from 'node:crypto';
import type { Kem } from '../crypto.ts';
import { KEM_PUBLIC_KEY_BYTES } from '../crypto.ts';
import { nobleMlKem768 } from '../noble.ts';

export function gatewayMlKem768(): Kem {
  return hasMlKem768() ? { ...nobleMlKem768, encapsulateFresh } : nobleMlKem768;
}

/** A Node that knows the function may still stand on an OpenSSL that lacks the algorithm. */
function hasMlKem768(): boolean {
  if (typeof openssl.encapsulate !== 'function') return false;
  try {
    openssl.generateKeyPairSync('ml-kem-768');
    return true;
  } catch {
    return false;
  }
}

/** RFC 9935 §4: what stands before the bytes of the key in a SubjectPublicKeyInfo of id-alg-ml-kem-768. */
const SPKI_HEADER = Buffer.from('308204b2300b0609608648016503040402038204a100', 'hex');

const encapsulateFresh: NonNullable<Kem['encapsulateFresh']> = (publicKey) => {
  if (publicKey.length !== KEM_PUBLIC_KEY_BYTES) return undefined;
  const key = importPublicKey(publicKey);
  if (key === undefined) return undefined;
  const { ciphertext, sharedKey } = openssl.encapsulate(key);
  return { ciphertext, sharedSecret: sharedKey };
};

/** OpenSSL refuses a key that fails the check of FIPS 203 §7.2. */
function importPublicKey(publicKey: Uint8Array): openssl.KeyObject | undefined {
  try {
    return openssl.createPublicKey({ key: Buffer.concat([SPKI_HEADER, publicKey]), format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}
