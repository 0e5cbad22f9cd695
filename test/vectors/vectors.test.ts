import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { watchedProviders } from '../channel/watched-crypto.ts';
import { VECTOR_FILES } from './all.ts';
import { readVectors } from './read-vectors.ts';

const contents = readVectors();

test('every file of this folder is run', () => {
  const files = readdirSync(new URL('.', import.meta.url)).filter((name) => name.endsWith('.json'));
  expect(files.toSorted()).toEqual(VECTOR_FILES.map(({ name }) => name).toSorted());
});

describe.each(['noble', 'node'] as const)('%s', (choice) => {
  test.each(VECTOR_FILES)('$name', ({ name, rows, run }) => {
    // Wycheproof uses keys and nonces again, as vectors for a cipher may; in those of a protocol it would be a fault.
    const crypto = name.endsWith('_test.json') ? gatewayCrypto(choice) : watchedProviders(name)[choice];
    expect(run(crypto, contents[name])).toEqual({ passed: rows, failed: [] });
  });
});
