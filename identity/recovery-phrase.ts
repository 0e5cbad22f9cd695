/**
 * A backup: 24 words of BIP-39's English list, which are the 256 bits of the master key and 8 check bits. They are not a
 * seed phrase that something is stretched from; the words are the key.
 */
import { entropyToMnemonic, mnemonicToEntropy } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import type { MasterKey } from './secret-keys.ts';
import { asMasterKey, SECRET_BYTES } from './secret-keys.ts';

/** Of the longest 24 words there are, with room for the line breaks and spaces of whoever copied them. */
export const MAX_BACKUP_CHARACTERS = 1024;

export function formatBackup(master: MasterKey): string {
  return encodeWords(master);
}

/** `undefined` if these are not 24 words of the list, in any case and spacing, whose check bits are right. */
export function findBackup(text: string): MasterKey | undefined {
  const bytes = decodeWords(text);
  try {
    return bytes && asMasterKey(bytes);
  } catch {
    return undefined;
  }
}

/** Any 32 bytes, whether or not they could be a key. */
export function encodeWords(bytes: Uint8Array): string {
  if (bytes.length !== SECRET_BYTES) throw new RangeError(`24 words hold 32 bytes, not ${bytes.length}`);
  return entropyToMnemonic(bytes, wordlist);
}

export function decodeWords(text: string): Uint8Array | undefined {
  if (text.length > MAX_BACKUP_CHARACTERS) return undefined;
  const words = text.trim().toLowerCase().split(/\s+/);
  if (words.length !== 24) return undefined;
  try {
    return mnemonicToEntropy(words.join(' '), wordlist);
  } catch {
    return undefined;
  }
}
