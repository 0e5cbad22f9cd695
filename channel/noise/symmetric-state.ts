/** The SymmetricState of Noise rev 34 §5.2: chaining key, handshake hash, and the key they have led to so far. */
import { concatBytes, EMPTY, utf8ToBytes } from '../bytes.ts';
import type { Crypto } from '../crypto.ts';
import { AEAD_TAG_BYTES } from '../crypto.ts';
import { hkdfExpand, hkdfExtract } from '../hkdf.ts';
import { CipherState } from './cipher-state.ts';

/** HASHLEN of SHA-256. */
const HASH_BYTES = 32;

export class SymmetricState {
  readonly #crypto: Crypto;
  #chainingKey: Uint8Array;
  #hash: Uint8Array;
  #cipher: CipherState | undefined;

  /** InitializeSymmetric(). */
  constructor(crypto: Crypto, protocolName: string) {
    this.#crypto = crypto;
    const name = utf8ToBytes(protocolName);
    this.#hash = name.length > HASH_BYTES ? crypto.sha256(name) : paddedToHash(name);
    this.#chainingKey = new Uint8Array(this.#hash);
  }

  get handshakeHash(): Uint8Array {
    return this.#hash;
  }

  /** How much longer EncryptAndHash() makes what it is given: nothing before the first key. */
  get tagBytes(): number {
    return this.#cipher === undefined ? 0 : AEAD_TAG_BYTES;
  }

  mixKey(inputKey: Uint8Array): void {
    const [chainingKey, key] = this.#expand(inputKey, 2);
    this.#advance(chainingKey, key);
  }

  mixHash(data: Uint8Array): void {
    this.#hash = this.#crypto.sha256(concatBytes(this.#hash, data));
  }

  mixKeyAndHash(inputKey: Uint8Array): void {
    const [chainingKey, hash, key] = this.#expand(inputKey, 3);
    this.mixHash(hash);
    this.#advance(chainingKey, key);
  }

  encryptAndHash(plaintext: Uint8Array): Uint8Array {
    const ciphertext = this.#cipher === undefined ? plaintext : this.#cipher.seal(this.#hash, plaintext);
    this.mixHash(ciphertext);
    return ciphertext;
  }

  /** @throws ChannelError `handshake_refused` */
  decryptAndHash(ciphertext: Uint8Array): Uint8Array {
    const plaintext = this.#cipher === undefined ? ciphertext : this.#cipher.open(this.#hash, ciphertext);
    this.mixHash(ciphertext);
    return plaintext;
  }

  /** The keys of Split(): first the one with which the initiator sends. */
  split(): readonly [Uint8Array, Uint8Array] {
    const [first, second] = this.#expand(EMPTY, 2);
    return [first, second];
  }

  erase(): void {
    this.#chainingKey.fill(0);
    this.#cipher?.erase();
  }

  #advance(chainingKey: Uint8Array, key: Uint8Array): void {
    this.erase();
    this.#chainingKey = chainingKey;
    this.#cipher = new CipherState(this.#crypto, key);
  }

  /** HKDF(chaining_key, input_key_material, num_outputs) of §4.3, which is RFC 5869 with an empty info. */
  #expand(inputKey: Uint8Array, outputs: 2 | 3): readonly [Uint8Array, Uint8Array, Uint8Array] {
    const prk = hkdfExtract(this.#crypto, this.#chainingKey, inputKey);
    const output = hkdfExpand(this.#crypto, prk, EMPTY, outputs * HASH_BYTES);
    prk.fill(0);
    return [output.slice(0, 32), output.slice(32, 64), output.slice(64, 96)];
  }
}

function paddedToHash(name: Uint8Array): Uint8Array {
  const padded = new Uint8Array(HASH_BYTES);
  padded.set(name);
  return padded;
}
