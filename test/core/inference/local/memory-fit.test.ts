import { expect, test } from 'vitest';
import { estimateMemory } from '../../../../core/inference/local/memory-estimate.ts';
import { memoryFacts } from '../../../../core/inference/local/memory-facts.ts';
import { judgeFit } from '../../../../core/inference/local/memory-fit.ts';

const GiB = 1024 ** 3;
/** 1 MiB of cache a token. */
const facts = memoryFacts(
  {
    'general.architecture': 'llama',
    'llama.block_count': 64,
    'llama.context_length': 4096,
    'llama.embedding_length': 4096,
    'llama.attention.head_count': 32,
  },
  GiB,
);
const wanted = { contextTokens: 8192 };

test('with room to spare it fits, with what the model was trained for and no more', () => {
  expect(judgeFit(facts, wanted, 64 * GiB)).toEqual({
    verdict: 'fits',
    contextTokens: 4096,
    estimate: estimateMemory(facts, { contextTokens: 4096, sequences: 1 }),
    availableBytes: 64 * GiB,
  });
});

test('with little left over, or with a shorter context, it is tight', () => {
  const { totalBytes } = estimateMemory(facts, { contextTokens: 4096, sequences: 1 });
  expect(judgeFit(facts, wanted, totalBytes / 0.84)).toMatchObject({ verdict: 'fits', contextTokens: 4096 });
  expect(judgeFit(facts, wanted, totalBytes / 0.86)).toMatchObject({ verdict: 'tight', contextTokens: 4096 });
  const shorter = judgeFit(facts, wanted, totalBytes - 1);
  expect(shorter).toMatchObject({ verdict: 'tight', contextTokens: 2048 });
  expect(shorter.estimate.totalBytes).toBeLessThan(totalBytes);
});

test('what does not fit even with a short context, does not', () => {
  expect(judgeFit(facts, wanted, GiB)).toMatchObject({ verdict: 'does not fit', contextTokens: 4096 });
});
