/**
 * The providers that every test of the channel runs on. They write down each (key, nonce) under which something was
 * sealed, and a test during which one came up a second time fails: for ChaCha20-Poly1305 that is the end of secrecy and
 * of authenticity. `watched-crypto.test.ts` sees to it that no test goes round this file.
 */
import { afterEach } from 'vitest';
import type { Crypto } from '../../channel/crypto.ts';
import { nobleCrypto } from '../../channel/noble.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { seededBytes } from './sampling.ts';

/** Under which keys and nonces was sealed. */
export class Ledger {
  readonly #seen = new Set<string>();
  reused = 0;

  note(key: Uint8Array, nonce: Uint8Array): void {
    const entry = String.fromCharCode(...key, ...nonce);
    if (this.#seen.has(entry)) this.reused++;
    this.#seen.add(entry);
  }
}

/** `crypto`, writing into a ledger. */
export function watched(crypto: Crypto, ledger: Ledger): Crypto {
  return {
    ...crypto,
    aead: {
      ...crypto.aead,
      seal(key, nonce, associatedData, box) {
        ledger.note(key, nonce);
        crypto.aead.seal(key, nonce, associatedData, box);
      },
    },
  };
}

const ledgers: Ledger[] = [];

afterEach(() => {
  const reused = ledgers.reduce((sum, ledger) => sum + ledger.reused, 0);
  if (reused > 0) throw new Error(`a key and nonce sealed twice, ${reused} times`);
});

/**
 * Both providers with seeded randomness, on one ledger. Tests with fixed keys take new ones, since two runs of the same
 * known answer do seal the same twice.
 */
export function watchedProviders(name: string): { readonly noble: Crypto; readonly node: Crypto } {
  const ledger = new Ledger();
  ledgers.push(ledger);
  return {
    noble: watched({ ...gatewayCrypto('noble'), randomBytes: seededBytes(`${name} noble`) }, ledger),
    node: watched({ ...gatewayCrypto('node'), randomBytes: seededBytes(`${name} node`) }, ledger),
  };
}

export const { noble, node } = watchedProviders('suite');

/** For `describe.each` and the like. */
export const PROVIDERS: readonly (readonly [string, Crypto])[] = [
  ['noble', noble],
  ['node', node],
];

/** A provider that differs from the real one, for tests of what becomes of its faults. */
export function unwatchedNoble(): Crypto {
  return nobleCrypto(seededBytes('unwatched'));
}
