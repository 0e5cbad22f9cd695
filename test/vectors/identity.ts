/**
 * Runs the vectors of what identity is built from: ECDSA on secp256k1, Ed25519, the checksum of addresses, and the words
 * of a backup. They need no provider; `_` is where the channel's runners take theirs.
 */
import { ed25519 } from '@noble/curves/ed25519.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import type { Crypto } from '../../channel/crypto.ts';
import { addressOfPublicKey, findAddress, formatAddress } from '../../identity/address.ts';
import { decodeWords, encodeWords } from '../../identity/recovery-phrase.ts';
import { findSigner } from '../../identity/signature.ts';
import type { Outcome } from './outcome.ts';
import { fromHex, isHex, runRows } from './outcome.ts';

interface SignatureTest {
  readonly tcId: number;
  readonly msg: string;
  readonly sig: string;
  readonly result: 'valid' | 'invalid';
}

interface SignatureFile {
  readonly testGroups: readonly {
    readonly publicKey: { readonly uncompressed: string; readonly pk: string };
    readonly tests: readonly SignatureTest[];
  }[];
}

type Check = (publicKey: Uint8Array, test: SignatureTest) => boolean;

function runSignatures(content: unknown, field: 'uncompressed' | 'pk', check: Check): Outcome {
  return runRows(
    (content as SignatureFile).testGroups.flatMap(({ publicKey, tests }) =>
      tests.map((test) => ({ name: `#${test.tcId}`, check: () => check(fromHex(publicKey[field]), test) })),
    ),
  );
}

/** Signatures as r ‖ s. A high s is valid in the standard, and refused by us. */
export function runSecp256k1P1363(_: Crypto, content: unknown): Outcome {
  return runSignatures(content, 'uncompressed', (publicKey, test) => {
    const verdict = verifies(test, { publicKey, format: 'compact', lowS: false });
    const names = recovers(fromHex(test.sig), { publicKey, test });
    return verdict === (test.result === 'valid') && names === (verdict && !hasHighS(fromHex(test.sig)));
  });
}

/** The point behind r has a coordinate above the group's order, which a v of 27 or 28 can't say: 1 in 2^128 does. */
const BEYOND_V = new Set([346]);

/** Signatures in DER, and only those with a low s are valid. */
export function runSecp256k1Bitcoin(_: Crypto, content: unknown): Outcome {
  return runSignatures(content, 'uncompressed', (publicKey, test) => {
    const verdict = verifies(test, { publicKey, format: 'der', lowS: true });
    const rs = compactOf(fromHex(test.sig));
    const names = rs !== undefined && recovers(rs, { publicKey, test });
    return verdict === (test.result === 'valid') && names === (verdict && !BEYOND_V.has(test.tcId));
  });
}

interface Verification {
  readonly publicKey: Uint8Array;
  readonly format: 'compact' | 'der';
  readonly lowS: boolean;
}

/** noble's own check, which ours rests on. */
function verifies({ msg, sig }: SignatureTest, { publicKey, format, lowS }: Verification): boolean {
  try {
    return secp256k1.verify(fromHex(sig), fromHex(msg), publicKey, { format, lowS });
  } catch {
    return false;
  }
}

/** Whether our code, given these r ‖ s with either v, names the public key's address. */
function recovers(rs: Uint8Array, { publicKey, test }: { publicKey: Uint8Array; test: SignatureTest }): boolean {
  const hash = sha256(fromHex(test.msg));
  return [27, 28].some((v) => findSigner(hash, Uint8Array.of(...rs, v)) === addressOfPublicKey(publicKey));
}

function hasHighS(rs: Uint8Array): boolean {
  return secp256k1.Signature.fromBytes(rs, 'compact').hasHighS();
}

function compactOf(der: Uint8Array): Uint8Array | undefined {
  try {
    return secp256k1.Signature.fromBytes(der, 'der').toBytes('compact');
  } catch {
    return undefined;
  }
}

/** By RFC 8032 §5.1.7 as it is written, not by the laxer rules of ZIP 215. */
export function runEd25519(_: Crypto, content: unknown): Outcome {
  return runSignatures(content, 'pk', (publicKey, { msg, sig, result }) => {
    const verify = (): boolean => ed25519.verify(fromHex(sig), fromHex(msg), publicKey, { zip215: false });
    try {
      return verify() === (result === 'valid');
    } catch {
      return result === 'invalid';
    }
  });
}

/** Every address of the standard's list, and the same in the cases that its checksum forbids. */
export function runEip55(_: Crypto, content: unknown): Outcome {
  const addresses = Object.values(content as Readonly<Record<string, readonly string[]>>).flat();
  return runRows(
    addresses.map((address) => {
      const digits = address.slice(2);
      const others = [digits.toLowerCase(), digits.toUpperCase(), swapCase(digits)].map((text) => `0x${text}`);
      const check = (): boolean =>
        formatAddress(fromHex(digits)) === address &&
        findAddress(address) === address &&
        others.every((other) => other === address || findAddress(other) === undefined);
      return { name: address, check };
    }),
  );
}

const swapCase = (text: string): string =>
  Array.from(text, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase())).join(
    '',
  );

/** Those of 24 words are the 32 bytes. Shorter ones are as good to BIP-39, and no backup of ours. */
export function runBip39(_: Crypto, content: unknown): Outcome {
  const { english } = content as { readonly english: readonly (readonly [entropy: string, words: string])[] };
  return runRows(
    english.map(([entropy, words]) => {
      const check = (): boolean =>
        entropy.length === 64
          ? encodeWords(fromHex(entropy)) === words && isHex(decodeWords(words), entropy)
          : decodeWords(words) === undefined;
      return { name: words, check };
    }),
  );
}
