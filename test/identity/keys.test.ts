import { createECDH } from 'node:crypto';
import { hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressOf, addressOfPublicKey, findAddress, formatAddress } from '../../identity/address.ts';
import { decodeWords, findBackup, formatBackup } from '../../identity/recovery-phrase.ts';
import { createColumnCipher } from '../../identity/sealed-column.ts';
import {
  asAgentKey,
  asAuditKey,
  asColumnKey,
  asGatewayKey,
  asMasterKey,
  type MasterKey,
} from '../../identity/secret-keys.ts';
import { findSigner, isSignature, messageHash, signHash } from '../../identity/signature.ts';
import { runs } from '../support/sampling.ts';

const N = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
const anyMaster = bytes32.filter((bytes) => isMaster(bytes)).map(asMasterKey);

function isMaster(bytes: Uint8Array): boolean {
  try {
    return asMasterKey(bytes).length === 32;
  } catch {
    return false;
  }
}

describe('secret keys', () => {
  test.each([
    ['zero', '00'.repeat(32)],
    ['the group’s order', N],
    ['above the order', 'ff'.repeat(32)],
    ['31 bytes', '01'.repeat(31)],
    ['33 bytes', '01'.repeat(33)],
  ])('%s signs nothing', (_, hex) => {
    expect(() => asMasterKey(hexToBytes(hex))).toThrow(RangeError);
    expect(() => asAgentKey(hexToBytes(hex))).toThrow(RangeError);
  });

  test('one less than the order does', () => {
    expect(isMaster(hexToBytes(N.replace(/1$/, '0')))).toBe(true);
  });

  test('the others are any 32 bytes, and only 32', () => {
    for (const as of [asGatewayKey, asColumnKey, asAuditKey]) {
      expect(as(new Uint8Array(32))).toHaveLength(32);
      expect(() => as(new Uint8Array(31))).toThrow(RangeError);
    }
  });
});

describe('addresses', () => {
  test('of key 1, which every implementation knows', () => {
    const one = asMasterKey(hexToBytes('01'.padStart(64, '0')));
    expect(addressOf(one)).toBe('0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf');
  });

  test('are those of the public key that OpenSSL computes, compressed or not', () => {
    fc.assert(
      fc.property(anyMaster, (key) => {
        const ecdh = createECDH('secp256k1');
        ecdh.setPrivateKey(key);
        expect(addressOfPublicKey(ecdh.getPublicKey())).toBe(addressOf(key));
        expect(addressOfPublicKey(ecdh.getPublicKey(null, 'compressed'))).toBe(addressOf(key));
      }),
      runs(400),
    );
  });

  test('have one text each', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 20, maxLength: 20 }), fc.nat(41), (bytes, at) => {
        const address = formatAddress(bytes);
        expect(findAddress(address)).toBe(address);
        const letter = address.charAt(at);
        const swapped = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
        const other = address.slice(0, at) + swapped + address.slice(at + 1);
        expect(findAddress(other)).toBe(other === address ? address : undefined);
        expect(findAddress(address.slice(0, -1))).toBeUndefined();
        expect(findAddress(`${address}0`)).toBeUndefined();
        expect(findAddress(`${address}\n`)).toBeUndefined();
      }),
      runs(1000),
    );
  });

  test('have 20 bytes', () => {
    expect(() => formatAddress(new Uint8Array(21))).toThrow(RangeError);
  });
});

describe('signatures', () => {
  // The example of web3.js's `eth.accounts.sign`: our construction under the domain of EIP-191's version 0x45.
  const key = asMasterKey(hexToBytes('4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318'));
  const hash = messageHash('Ethereum Signed Message', utf8ToBytes('Some data'));
  const signature = hexToBytes(
    'b91467e570a6466aa9e9876cbcd013baba02900b8979d43fe208a4a4f339f5fd' +
      '6007e74cd82e037b800186422fc2da167c747ef045e5d18a5f5d4300f8e1a029' +
      '1c',
  );

  test('are those of a published example', () => {
    expect(hash).toEqual(hexToBytes('1da44b586eb0729ff70a73c326926f6ed5a25f5b056e7f47fbc6e58d86871655'));
    expect(signHash(hash, key)).toEqual(signature);
    expect(findSigner(hash, signature)).toBe('0x2c7536E3605D9C16a7a3D7b1898e529396a65c23');
  });

  test('name nobody else, and nobody for another message or domain', () => {
    for (const other of [
      messageHash('Ethereum Signed Message', utf8ToBytes('Some date')),
      messageHash('Ethereum Signed Messagf', utf8ToBytes('Some data')),
    ]) {
      expect(findSigner(other, signature)).not.toBe(addressOf(key));
    }
  });

  test('no message is a message of another domain by moving the border', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        fc.pre(a !== b);
        expect(messageHash('one', utf8ToBytes(a))).not.toEqual(messageHash('one', utf8ToBytes(b)));
        expect(messageHash('one:\n1', utf8ToBytes(a))).not.toEqual(messageHash('one', utf8ToBytes(`:\n1${a}`)));
      }),
      runs(1000),
    );
  });

  test('of any bytes are refused or name somebody, without throwing', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 64, maxLength: 64 }), fc.constantFrom(27, 28, 29), (rs, v) => {
        const bytes = Uint8Array.of(...rs, v);
        const signer = findSigner(hash, bytes);
        expect(signer === undefined || isSignature(bytes)).toBe(true);
      }),
      runs(1000),
    );
    expect(isSignature(signature.subarray(0, -1))).toBe(false);
    expect(isSignature(new Uint8Array(0))).toBe(false);
  });
});

describe('the words of a backup', () => {
  test('are the key, in any case and spacing', () => {
    fc.assert(
      fc.property(anyMaster, (key: MasterKey) => {
        const words = formatBackup(key);
        expect(words.split(' ')).toHaveLength(24);
        expect(findBackup(words)).toEqual(key);
        expect(findBackup(`\n ${words.toUpperCase().replaceAll(' ', '\n\t ')} \n`)).toEqual(key);
      }),
      runs(400),
    );
  });

  test('a word left out, added, misspelled or in another place is noticed', () => {
    const words = formatBackup(asMasterKey(new Uint8Array(32).fill(7))).split(' ');
    expect(findBackup(words.slice(1).join(' '))).toBeUndefined();
    expect(findBackup([...words, words[0]].join(' '))).toBeUndefined();
    expect(findBackup(['abandom', ...words.slice(1)].join(' '))).toBeUndefined();
    expect(findBackup([words[1], words[0], ...words.slice(2)].join(' '))).toBeUndefined();
    expect(findBackup('')).toBeUndefined();
    expect(findBackup('abandon '.repeat(1_000_000))).toBeUndefined();
  });

  test('of bytes that are no key are no backup, though BIP-39 takes them', () => {
    const none = `${'abandon '.repeat(23)}art`;
    expect(decodeWords(none)).toEqual(new Uint8Array(32));
    expect(findBackup(none)).toBeUndefined();
    expect(findBackup(`${'zoo '.repeat(23)}vote`)).toBeUndefined();
  });
});

describe('sealed columns', () => {
  const place = { table: 'devices', column: 'psk', row: '17' };
  let draws = 0;
  const randomBytes = (length: number) => new Uint8Array(length).fill((draws += 1));
  const cipher = createColumnCipher(asColumnKey(new Uint8Array(32).fill(1)), randomBytes);

  test('open where they were sealed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (secret) => {
        expect(cipher.open(place, cipher.seal(place, secret))).toEqual(secret);
      }),
      runs(400),
    );
    expect(cipher.seal(place, new Uint8Array(32))).not.toEqual(cipher.seal(place, new Uint8Array(32)));
  });

  test('and nowhere else: another row, column, table, key, or a border moved between them', () => {
    const box = cipher.seal(place, new Uint8Array(32));
    for (const other of [
      { ...place, row: '18' },
      { ...place, column: 'grant' },
      { ...place, table: 'invites' },
      { table: 'devicesp', column: 'sk', row: '17' },
    ]) {
      expect(cipher.open(other, box)).toBeUndefined();
    }
    expect(createColumnCipher(asColumnKey(new Uint8Array(32)), randomBytes).open(place, box)).toBeUndefined();
  });

  test('every flipped bit and every truncation is refused', () => {
    const box = cipher.seal(place, new Uint8Array(8));
    for (let bit = 0; bit < box.length * 8; bit++) {
      expect(cipher.open(place, box.with(bit >> 3, box[bit >> 3]! ^ (1 << (bit & 7))))).toBeUndefined();
    }
    for (let length = 0; length < box.length; length++) {
      expect(cipher.open(place, box.subarray(0, length))).toBeUndefined();
    }
  });
});
