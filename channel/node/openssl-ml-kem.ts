/**
 * ML-KEM-768 as OpenSSL has it, where Node does (24.7 and newer), and whether it computes right. Without any other
 * library, so that it can be tested before anything is served.
 */
import * as openssl from 'node:crypto';
import { KEM_KEY_SEED_BYTES, KEM_PUBLIC_KEY_BYTES, type Kem } from '../crypto.ts';

/** A Node that knows the function may still stand on an OpenSSL that lacks the algorithm. */
export function hasOpensslMlKem768(): boolean {
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
/** RFC 9935 §6: what stands before the seed `d ‖ z` in a PrivateKeyInfo. */
const PKCS8_HEADER = Buffer.from('3054020100300b060960864801650304040204428040', 'hex');

export const encapsulateFresh: NonNullable<Kem['encapsulateFresh']> = (publicKey) => {
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

const CIPHERTEXT_BYTES = 1088;
/** Of the key whose seed is 64 bytes of 0x15, as in `channel-kat.json`. */
const PUBLIC_KEY_SHA256 = 'c29190dab0bdfa382433df4a438b162e2221862d611ef305de46c28c9d2730ab';
/** FIPS 203 §6.3: what that key finds in a ciphertext of 0x16 alone, which nobody encapsulated. Noble finds the same. */
const IMPLICIT_REJECTION = '1b9da2baf664e40a7cbd3e748ec9ff84c2eb010e888f03a720c5f041ce3c2646';

/** Known answers where there are any; of what is random, that both sides find the same and each time another. */
export function isOpensslMlKemRight(): boolean {
  try {
    const seed = Buffer.alloc(KEM_KEY_SEED_BYTES, 0x15);
    const key = openssl.createPrivateKey({ key: Buffer.concat([PKCS8_HEADER, seed]), format: 'der', type: 'pkcs8' });
    const spki = openssl.createPublicKey(key).export({ format: 'der', type: 'spki' });
    const publicKey = spki.subarray(SPKI_HEADER.length);
    const rejected = openssl.decapsulate(key, Buffer.alloc(CIPHERTEXT_BYTES, 0x16));
    return (
      openssl.hash('sha256', publicKey) === PUBLIC_KEY_SHA256 &&
      rejected.toString('hex') === IMPLICIT_REJECTION &&
      encapsulatesFresh(key, publicKey) &&
      encapsulateFresh(new Uint8Array(KEM_PUBLIC_KEY_BYTES).fill(0xff)) === undefined
    );
  } catch {
    return false;
  }
}

function encapsulatesFresh(key: openssl.KeyObject, publicKey: Uint8Array): boolean {
  const secrets = [encapsulateFresh(publicKey), encapsulateFresh(publicKey)].map((made) => {
    const found = made && openssl.decapsulate(key, made.ciphertext);
    return made && found?.equals(made.sharedSecret) === true ? found.toString('hex') : undefined;
  });
  return secrets[0] !== undefined && secrets[1] !== undefined && secrets[0] !== secrets[1];
}
