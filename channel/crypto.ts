/**
 * The primitives that the channel is built from, as one small interface. Everything above it is the same code on every
 * platform; below it stand two providers, `noble.ts` (anywhere) and `node/crypto.ts` (the gateway), which must give the
 * same bytes for the same input. `self-test.ts` checks that.
 *
 * All but `randomBytes` and `encapsulateFresh` are deterministic: keys are made from seeds that the caller draws. A
 * known answer needs no hook in the code under test then, only `withRandomBytes` and a script.
 */
import type { PublicKey } from './keys.ts';

export interface Crypto {
  /** Bytes from the platform's cryptographically secure generator. */
  randomBytes(length: number): Uint8Array;
  /** FIPS 180-4; 32 bytes. */
  sha256(message: Uint8Array): Uint8Array;
  /** RFC 2104 with SHA-256; 32 bytes. */
  hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array;
  /** The X25519 key pair of a 32-byte secret (RFC 7748 §5 clamps it). The provider keeps its own copy of the secret. */
  x25519(secretKey: Uint8Array): DhKeyPair;
  readonly aead: Aead;
  readonly mlKem768: Kem;
}

export interface DhKeyPair {
  readonly publicKey: PublicKey;
  /** The shared secret, or `undefined` where it is all zero: the other key is of small order (RFC 7748 §6.1). */
  agree(otherPublicKey: Uint8Array): Uint8Array | undefined;
  /** Forgets the secret key, as far as the platform allows. Nothing can be agreed on afterwards. */
  erase(): void;
}

/** ChaCha20-Poly1305, RFC 8439 §2.8: 32-byte key, 12-byte nonce, 16-byte tag. */
export interface Aead {
  /** Seals in place: `box` is the plaintext and then room for the tag, and becomes ciphertext ‖ tag. */
  seal(key: Uint8Array, nonce: Uint8Array, associatedData: Uint8Array, box: Uint8Array): void;
  /** The plaintext of ciphertext ‖ tag, in memory of its own; `undefined` if it does not authenticate. */
  open(key: Uint8Array, nonce: Uint8Array, associatedData: Uint8Array, box: Uint8Array): Uint8Array | undefined;
}

/** ML-KEM-768, FIPS 203. */
export interface Kem {
  /** The key pair of the 64-byte seed d ‖ z (algorithm 16). */
  keyPair(seed: Uint8Array): KemKeyPair;
  /** Encapsulates with the 32 bytes `m` (algorithm 17); `undefined` if the key fails the check of §7.2. */
  encapsulate(publicKey: Uint8Array, m: Uint8Array): Encapsulation | undefined;
  /** The same with randomness of the provider's own (algorithm 20), where it has that and it is faster. */
  readonly encapsulateFresh?: ((publicKey: Uint8Array) => Encapsulation | undefined) | undefined;
  /** @returns the shared secret; for a changed ciphertext it is another one, not an error (implicit rejection). */
  decapsulate(ciphertext: Uint8Array, secretKey: Uint8Array): Uint8Array;
}

export interface KemKeyPair {
  readonly publicKey: Uint8Array;
  readonly secretKey: Uint8Array;
}

export interface Encapsulation {
  readonly ciphertext: Uint8Array;
  readonly sharedSecret: Uint8Array;
}

/** The same primitives on other random bytes, of which all that they compute depends. */
export function withRandomBytes(crypto: Crypto, randomBytes: Crypto['randomBytes']): Crypto {
  return { ...crypto, randomBytes, mlKem768: { ...crypto.mlKem768, encapsulateFresh: undefined } };
}

/** RFC 8439 §2.8. */
export const AEAD_NONCE_BYTES = 12;
export const AEAD_TAG_BYTES = 16;
/** FIPS 203, table 3. */
export const KEM_PUBLIC_KEY_BYTES = 1184;
export const KEM_CIPHERTEXT_BYTES = 1088;
/** FIPS 203 §3.3: d ‖ z, and m. */
export const KEM_KEY_SEED_BYTES = 64;
export const KEM_ENCAPSULATION_SEED_BYTES = 32;
