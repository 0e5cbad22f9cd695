/** Runs the Wycheproof files of this folder over a provider. */
import { concatBytes } from '../../channel/bytes.ts';
import type { Crypto } from '../../channel/crypto.ts';
import { hkdfExpand, hkdfExtract } from '../../channel/hkdf.ts';
import type { Outcome } from './outcome.ts';
import { fromHex, isHex, isRefused, runRows } from './outcome.ts';

interface WycheproofFile {
  readonly testGroups: readonly { readonly tests: readonly WycheproofTest[] }[];
}

interface WycheproofTest {
  readonly tcId: number;
  readonly result: 'valid' | 'invalid' | 'acceptable';
  readonly flags?: readonly string[];
  readonly [field: string]: unknown;
}

type Check = (crypto: Crypto, test: WycheproofTest) => boolean;

/** Every row of a file with the check that its kind needs. */
export function runWycheproof(crypto: Crypto, fileName: string, content: unknown): Outcome {
  const check = CHECKS[fileName];
  if (check === undefined) throw new RangeError(`no check for ${fileName}`);
  const tests = (content as WycheproofFile).testGroups.flatMap((group) => group.tests);
  return runRows(tests.map((test) => ({ name: `${fileName} #${test.tcId}`, check: () => check(crypto, test) })));
}

const hex = (test: WycheproofTest, field: string): Uint8Array => fromHex(text(test, field));
const text = (test: WycheproofTest, field: string): string => {
  const value = test[field];
  return typeof value === 'string' ? value : '';
};

const CHECKS: Readonly<Record<string, Check>> = {
  'x25519_test.json': checkX25519,
  'chacha20_poly1305_test.json': (crypto, test) => checkOpens(crypto, test) && checkSeals(crypto, test),
  'hkdf_sha256_test.json': checkHkdf,
  'hmac_sha256_test.json': checkHmac,
  'mlkem_768_test.json': checkMlKemDecapsulation,
  'mlkem_768_encaps_test.json': checkMlKemEncapsulation,
  'mlkem_768_keygen_seed_test.json': checkMlKemKeyPair,
  'mlkem_768_semi_expanded_decaps_test.json': checkMlKemExpandedKey,
};

/** "Acceptable" leaves the choice to us, and RFC 7748 §6.1 makes it: all is accepted but an all-zero secret. */
function checkX25519(crypto: Crypto, test: WycheproofTest): boolean {
  const agree = (): Uint8Array | undefined => crypto.x25519(hex(test, 'private')).agree(hex(test, 'public'));
  return test.flags?.includes('ZeroSharedSecret') === true ? isRefused(agree) : isHex(agree(), text(test, 'shared'));
}

function checkOpens(crypto: Crypto, test: WycheproofTest): boolean {
  const box = concatBytes(hex(test, 'ct'), hex(test, 'tag'));
  const open = (): Uint8Array | undefined => crypto.aead.open(hex(test, 'key'), hex(test, 'iv'), hex(test, 'aad'), box);
  return test.result === 'valid' ? isHex(open(), text(test, 'msg')) : isRefused(open);
}

function checkSeals(crypto: Crypto, test: WycheproofTest): boolean {
  // A row with a changed tag says nothing about sealing.
  if (test.flags?.includes('ModifiedTag') === true) return true;
  const box = concatBytes(hex(test, 'msg'), new Uint8Array(16));
  const seal = (): Uint8Array => {
    crypto.aead.seal(hex(test, 'key'), hex(test, 'iv'), hex(test, 'aad'), box);
    return box;
  };
  return test.result === 'valid' ? isHex(seal(), text(test, 'ct') + text(test, 'tag')) : isRefused(seal);
}

function checkHkdf(crypto: Crypto, test: WycheproofTest): boolean {
  const derive = (): Uint8Array =>
    hkdfExpand(crypto, hkdfExtract(crypto, hex(test, 'salt'), hex(test, 'ikm')), hex(test, 'info'), Number(test.size));
  return test.result === 'valid' ? isHex(derive(), text(test, 'okm')) : isRefused(derive);
}

/** Some rows have a shortened tag. */
function checkHmac(crypto: Crypto, test: WycheproofTest): boolean {
  const tag = text(test, 'tag');
  const computed = crypto.hmacSha256(hex(test, 'key'), hex(test, 'msg')).subarray(0, tag.length / 2);
  return isHex(computed, tag) === (test.result === 'valid');
}

function checkMlKemDecapsulation(crypto: Crypto, test: WycheproofTest): boolean {
  const decapsulate = (): Uint8Array => {
    const { publicKey, secretKey } = crypto.mlKem768.keyPair(hex(test, 'seed'));
    if (test.ek !== undefined && !isHex(publicKey, text(test, 'ek'))) throw new Error('another public key');
    return crypto.mlKem768.decapsulate(hex(test, 'c'), secretKey);
  };
  return test.result === 'valid' ? isHex(decapsulate(), text(test, 'K')) : isRefused(decapsulate);
}

function checkMlKemEncapsulation(crypto: Crypto, test: WycheproofTest): boolean {
  const encapsulated = crypto.mlKem768.encapsulate(hex(test, 'ek'), hex(test, 'm'));
  const fresh = crypto.mlKem768.encapsulateFresh?.(hex(test, 'ek'));
  if (crypto.mlKem768.encapsulateFresh !== undefined && (fresh === undefined) !== (encapsulated === undefined))
    return false;
  if (test.result !== 'valid') return encapsulated === undefined;
  return isHex(encapsulated?.ciphertext, text(test, 'c')) && isHex(encapsulated?.sharedSecret, text(test, 'K'));
}

function checkMlKemKeyPair(crypto: Crypto, test: WycheproofTest): boolean {
  const { publicKey, secretKey } = crypto.mlKem768.keyPair(hex(test, 'seed'));
  const fresh = crypto.mlKem768.encapsulateFresh?.(publicKey);
  const agrees =
    fresh === undefined ||
    isHex(crypto.mlKem768.decapsulate(fresh.ciphertext, secretKey), Buffer.from(fresh.sharedSecret).toString('hex'));
  return agrees && isHex(publicKey, text(test, 'ek')) && isHex(secretKey, text(test, 'dk'));
}

function checkMlKemExpandedKey(crypto: Crypto, test: WycheproofTest): boolean {
  const decapsulate = (): Uint8Array => crypto.mlKem768.decapsulate(hex(test, 'c'), hex(test, 'dk'));
  return test.result === 'valid' ? isHex(decapsulate(), text(test, 'K')) : isRefused(decapsulate);
}
