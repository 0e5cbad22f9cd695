/** The CipherState of Noise rev 34 §5.1: a key and the number of messages it has sealed or opened. */
import { concatBytes } from '../bytes.ts';
import type { Crypto } from '../crypto.ts';
import { AEAD_TAG_BYTES } from '../crypto.ts';
import { ChannelError } from '../errors.ts';
import { nonceOf } from '../nonce.ts';

export class CipherState {
  readonly #crypto: Crypto;
  readonly #key: Uint8Array;
  #n = 0;

  constructor(crypto: Crypto, key: Uint8Array) {
    this.#crypto = crypto;
    this.#key = key;
  }

  /** EncryptWithAd(). */
  seal(associatedData: Uint8Array, plaintext: Uint8Array): Uint8Array {
    const box = concatBytes(plaintext, new Uint8Array(AEAD_TAG_BYTES));
    this.#crypto.aead.seal(this.#key, nonceOf(this.#n++), associatedData, box);
    return box;
  }

  /** DecryptWithAd(). The nonce of a message that does not open stays unused (§5.1). @throws ChannelError */
  open(associatedData: Uint8Array, ciphertext: Uint8Array): Uint8Array {
    const plaintext = this.#crypto.aead.open(this.#key, nonceOf(this.#n), associatedData, ciphertext);
    if (plaintext === undefined) throw new ChannelError('handshake_refused');
    this.#n++;
    return plaintext;
  }

  erase(): void {
    this.#key.fill(0);
  }
}
