/** Every vector file of this folder with what runs it, and how many rows it has: none may be skipped unnoticed. */
import type { Crypto } from '../../channel/crypto.ts';
import { runChannelAnswers } from './channel-answers.ts';
import { runChannelKat } from './channel-kat.ts';
import { runCpace } from './cpace.ts';
import { runBip39, runEd25519, runEip55, runSecp256k1Bitcoin, runSecp256k1P1363 } from './identity.ts';
import { runCacophony, runXxHfs } from './noise.ts';
import type { Outcome } from './outcome.ts';
import { runWycheproof } from './wycheproof.ts';

interface VectorFile {
  readonly name: string;
  readonly rows: number;
  readonly run: (crypto: Crypto, content: unknown) => Outcome;
}

export const VECTOR_FILES: readonly VectorFile[] = [
  { name: 'noise-25519-chachapoly-sha256.json', rows: 59, run: runCacophony },
  { name: 'xxhfs-mlkem768.json', rows: 2, run: runXxHfs },
  { name: 'channel-kat.json', rows: 13, run: runChannelKat },
  { name: 'channel-answers.json', rows: 17, run: runChannelAnswers },
  { name: 'cpace-ristretto255-sha512.json', rows: 6, run: runCpace },
  wycheproof('x25519_test.json', 518),
  wycheproof('chacha20_poly1305_test.json', 325),
  wycheproof('hkdf_sha256_test.json', 86),
  wycheproof('hmac_sha256_test.json', 174),
  wycheproof('mlkem_768_test.json', 193),
  wycheproof('mlkem_768_encaps_test.json', 265),
  wycheproof('mlkem_768_keygen_seed_test.json', 100),
  wycheproof('mlkem_768_semi_expanded_decaps_test.json', 9),
  { name: 'ecdsa_secp256k1_sha256_p1363_test.json', rows: 252, run: runSecp256k1P1363 },
  { name: 'ecdsa_secp256k1_sha256_bitcoin_test.json', rows: 463, run: runSecp256k1Bitcoin },
  { name: 'ed25519_test.json', rows: 151, run: runEd25519 },
  { name: 'eip-55.json', rows: 8, run: runEip55 },
  { name: 'bip39-english.json', rows: 24, run: runBip39 },
];

function wycheproof(name: string, rows: number): VectorFile {
  return { name, rows, run: (crypto, content) => runWycheproof(crypto, name, content) };
}

/** `contents` by file name. One outcome for each file, in order. */
export function runAllVectors(crypto: Crypto, contents: Readonly<Record<string, unknown>>): readonly Outcome[] {
  return VECTOR_FILES.map(({ name, run }) => run(crypto, contents[name]));
}
