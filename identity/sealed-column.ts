/**
 * What the database holds of secrets: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha) under a key that is not in it. The
 * place is authenticated with the value, so a sealed value that is moved to another row or column does not open.
 *
 *     offset  size  field
 *          0    24  nonce, random: 2^80 values under one key before two are likely to share one
 *         24     n  ciphertext
 *     24 + n    16  tag
 */
import { xchacha20poly1305 } from '@noble/ciphers/chacha.js';
import { concatBytes, lengthPrefixed, utf8ToBytes } from '../channel/bytes.ts';
import type { ColumnKey } from './secret-keys.ts';

const NONCE_BYTES = 24;
const TAG_BYTES = 16;

export interface ColumnPlace {
  readonly table: string;
  readonly column: string;
  /** The row's primary key. */
  readonly row: string;
}

export type RandomBytes = (length: number) => Uint8Array;

/** Seals and opens the columns of one database. */
export interface ColumnCipher {
  seal(place: ColumnPlace, plaintext: Uint8Array): Uint8Array;
  /** `undefined` if the bytes were not sealed with this key for this place. */
  open(place: ColumnPlace, box: Uint8Array): Uint8Array | undefined;
}

export function createColumnCipher(key: ColumnKey, randomBytes: RandomBytes): ColumnCipher {
  return {
    seal(place, plaintext) {
      const nonce = randomBytes(NONCE_BYTES);
      return concatBytes(nonce, xchacha20poly1305(key, nonce, associatedData(place)).encrypt(plaintext));
    },
    open(place, box) {
      if (box.length < NONCE_BYTES + TAG_BYTES) return undefined;
      try {
        const nonce = box.subarray(0, NONCE_BYTES);
        return xchacha20poly1305(key, nonce, associatedData(place)).decrypt(box.subarray(NONCE_BYTES));
      } catch {
        return undefined;
      }
    },
  };
}

function associatedData({ table, column, row }: ColumnPlace): Uint8Array {
  return concatBytes(...[table, column, row].map((name) => lengthPrefixed(utf8ToBytes(name))));
}
