/**
 * One known answer for each primitive, and what each must refuse: a few milliseconds that say which one computes wrong.
 * `self-test.ts` then makes a whole session of them.
 */
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Crypto, Kem } from './crypto.ts';

export type PrimitiveName = 'SHA-256' | 'HMAC-SHA-256' | 'X25519' | 'ChaCha20-Poly1305' | 'ML-KEM-768';

/** ML-KEM is left out where it is not there. */
type Primitives = Omit<Crypto, 'mlKem768'> & { readonly mlKem768?: Kem };

const CHECKS: readonly (readonly [PrimitiveName, (crypto: Primitives) => boolean])[] = [
  ['SHA-256', isSha256],
  ['HMAC-SHA-256', isHmac],
  ['X25519', isX25519],
  ['ChaCha20-Poly1305', isAead],
  ['ML-KEM-768', ({ mlKem768, sha256 }) => mlKem768 === undefined || isMlKem(mlKem768, sha256)],
];

/** The first primitive that computes wrong, or can't; `undefined` if none does. */
export function findWrongPrimitive(crypto: Primitives): PrimitiveName | undefined {
  return CHECKS.find(([, check]) => !succeeds(() => check(crypto)))?.[0];
}

function succeeds(check: () => boolean): boolean {
  try {
    return check();
  } catch {
    return false;
  }
}

/** FIPS 180-2, B.1. */
function isSha256({ sha256 }: Primitives): boolean {
  return is(sha256(utf8ToBytes('abc')), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
}

/** RFC 4231 §4.3. */
function isHmac({ hmacSha256 }: Primitives): boolean {
  const tag = hmacSha256(utf8ToBytes('Jefe'), utf8ToBytes('what do ya want for nothing?'));
  return is(tag, '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843');
}

/** Computed by noble and OpenSSL; the all-zero secret of a small-order key is refused (RFC 7748 §6.1). */
function isX25519({ x25519 }: Primitives): boolean {
  const [one, other] = [x25519(repeated(0x11, 32)), x25519(repeated(0x12, 32))];
  const secret = one.agree(other.publicKey);
  return (
    is(one.publicKey, '7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13') &&
    is(secret, '0a8b7643c0576a2cf7023b77d98843922eabbc844d39766cc8eaaf7dd355753e') &&
    one.agree(repeated(0, 32)) === undefined
  );
}

/** Computed by noble and OpenSSL; what does not authenticate is not opened (RFC 8439 §2.8). */
function isAead({ aead, sha256 }: Primitives): boolean {
  const [key, nonce, header] = [repeated(0x18, 32), repeated(1, 12), repeated(2, 5)];
  const plaintext = new Uint8Array(64);
  plaintext.set(utf8ToBytes('known answer'));
  const box = new Uint8Array(80);
  box.set(plaintext);
  aead.seal(key, nonce, header, box);
  const sealed = new Uint8Array(box);
  const opened = aead.open(key, nonce, header, box);
  return (
    is(sha256(sealed), '40e1f7c040bc926a1f4573ff70085f84cb441c9a872622d6cf03879bc07052fb') &&
    is(opened, bytesToHex(plaintext)) &&
    aead.open(key, nonce, header, sealed.with(79, (sealed[79] ?? 0) ^ 1)) === undefined &&
    aead.open(key, nonce, repeated(3, 5), new Uint8Array(sealed)) === undefined
  );
}

/** FIPS 203 from fixed seeds, as `channel-kat.json` has them. */
function isMlKem(kem: Kem, sha256: Crypto['sha256']): boolean {
  const { publicKey, secretKey } = kem.keyPair(repeated(0x15, 64));
  const made = kem.encapsulate(publicKey, repeated(0x16, 32));
  const secret = 'e88984b057af7556c0de6d9c56db9b99cc8a551ea0e3f32b34adf4e8de3520c9';
  return (
    made !== undefined &&
    is(sha256(publicKey), 'c29190dab0bdfa382433df4a438b162e2221862d611ef305de46c28c9d2730ab') &&
    is(sha256(made.ciphertext), '84f230492ef88cebc8e5feef6225a77377ec4910ec29edb485b3c7b6adf0bd8d') &&
    is(made.sharedSecret, secret) &&
    is(kem.decapsulate(made.ciphertext, secretKey), secret)
  );
}

function is(computed: Uint8Array | undefined, expected: string): boolean {
  return computed !== undefined && bytesToHex(new Uint8Array(computed)) === expected;
}

function repeated(byte: number, length: number): Uint8Array {
  return new Uint8Array(length).fill(byte);
}
