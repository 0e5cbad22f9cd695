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
const setting = 8192;

test('with room to spare it fits, with what the model was trained for and no more', () => {
  expect(judgeFit(facts, setting, 64 * GiB)).toEqual({
    verdict: 'fits',
    contextTokens: 4096,
    limitTokens: 4096,
    estimate: estimateMemory(facts, { contextTokens: 4096, sequences: 1 }),
    availableBytes: 64 * GiB,
  });
});

test('with little left over, with a smaller cache, or with a shorter context, it is tight', () => {
  const { totalBytes } = estimateMemory(facts, { contextTokens: 4096, sequences: 1 });
  expect(judgeFit(facts, setting, totalBytes / 0.84)).toMatchObject({ verdict: 'fits', contextTokens: 4096 });
  expect(judgeFit(facts, setting, totalBytes / 0.86)).toMatchObject({ verdict: 'tight', contextTokens: 4096 });
  const quantized = estimateMemory(facts, { contextTokens: 4096, sequences: 1, cacheType: 'q8_0' }).totalBytes;
  expect(judgeFit(facts, setting, totalBytes - 1)).toMatchObject({
    verdict: 'tight',
    contextTokens: 4096,
    estimate: { totalBytes: quantized },
  });
  const shorter = judgeFit(facts, setting, quantized - 1);
  expect(shorter).toMatchObject({ verdict: 'tight', contextTokens: 2048 });
  expect(shorter.estimate.totalBytes).toBeLessThan(totalBytes);
});

test('what is set aside at first is not all that it can grow to', () => {
  const long = { ...facts, trainedContextTokens: 65_536 };
  expect(judgeFit(long, undefined, 100 * GiB)).toMatchObject({
    verdict: 'fits',
    contextTokens: 8192,
    limitTokens: 65_536,
  });
  expect(judgeFit(long, undefined, 40 * GiB)).toMatchObject({ contextTokens: 8192, limitTokens: 65_536 });
  expect(judgeFit(long, undefined, 30 * GiB)).toMatchObject({ contextTokens: 8192, limitTokens: 32_768 });
  expect(judgeFit(long, 4096, 100 * GiB)).toMatchObject({ contextTokens: 4096, limitTokens: 4096 });
});

test('what does not fit even with a short context, does not', () => {
  expect(judgeFit(facts, setting, GiB)).toMatchObject({ verdict: 'does not fit', contextTokens: 4096 });
});
