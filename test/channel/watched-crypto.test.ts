import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { asCallKey } from '../../channel/keys.ts';
import { RecordSealer } from '../../channel/record-sealer.ts';
import { text } from './paired.ts';
import { Ledger, unwatchedNoble, watched } from './watched-crypto.ts';

test('a key and nonce that seal twice are seen', () => {
  const ledger = new Ledger();
  const crypto = watched(unwatchedNoble(), ledger);
  const sealer = (): RecordSealer => new RecordSealer(crypto, asCallKey(new Uint8Array(32).fill(1)));
  sealer().sealHead(text('a'));
  expect(ledger.reused).toBe(0);
  sealer().sealHead(text('b'));
  expect(ledger.reused).toBe(1);
});

/** Why these may: the ledger itself, the vectors (which bring their own keys), and what tests the providers as such. */
const MAY_IMPORT_PROVIDERS = new Set(['watched-crypto.ts', 'gateway-crypto.test.ts']);

test('no other test of the channel makes a provider of its own', () => {
  const folder = new URL('.', import.meta.url);
  const offenders = readdirSync(folder)
    .filter((name) => name.endsWith('.ts') && !MAY_IMPORT_PROVIDERS.has(name))
    .filter((name) => /channel\/(noble|node\/crypto)\.ts/u.test(readFileSync(new URL(name, folder), 'utf8')));
  expect(offenders).toEqual([]);
});
