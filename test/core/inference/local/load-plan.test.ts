import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planLoad } from '../../../../core/inference/local/load-plan.ts';
import { estimateMemory } from '../../../../core/inference/local/memory-estimate.ts';
import { runs } from '../../../support/sampling.ts';

const GB = 1e9;
/** Like Llama 3.2 3B in 4 bits: 112 KiB of keys and values a token. */
const facts = {
  weightBytes: 2 * GB,
  cacheBytesPerToken: 112 * 1024,
  windowCacheBytesPerToken: 0,
  windowTokens: 0,
  isCacheQuantizable: false,
  stateBytesPerSequence: 0,
  outputBytesPerBatchToken: 4 * 128_256,
  layerBytesPerBatchToken: 4 * 30_000,
  vocabularySize: 128_256,
  trainedContextTokens: 131_072,
};
const bytes = (contextTokens: number, sequences: number) =>
  estimateMemory(facts, { contextTokens, sequences }).totalBytes;
const automatic = { contextTokens: 8192, sequences: 4, isAutomatic: true };

test('with room for everything, everything', () => {
  expect(planLoad(facts, automatic, 64 * GB)).toEqual({
    contextTokens: 8192,
    sequences: 4,
    cacheType: 'f16',
    memoryBytes: bytes(8192, 4),
    isReduced: false,
  });
});

test('sequences that nobody asked for take a quarter of the memory at most', () => {
  expect(planLoad(facts, automatic, 8 * GB)).toMatchObject({ contextTokens: 8192, sequences: 3, isReduced: false });
  expect(planLoad(facts, { ...automatic, isAutomatic: false }, 8 * GB)).toMatchObject({ sequences: 4 });
});

test('fewer sequences go before a shorter context, and a shorter context before a refusal', () => {
  const wanted = { ...automatic, isAutomatic: false };
  expect(planLoad(facts, wanted, bytes(8192, 2) + 0.3 * GB)).toMatchObject({ contextTokens: 8192, sequences: 2 });
  expect(planLoad(facts, wanted, bytes(4096, 1) + 0.3 * GB)).toMatchObject({
    contextTokens: 4096,
    sequences: 1,
    isReduced: true,
  });
  expect(planLoad(facts, wanted, bytes(1024, 1) + 0.2 * GB)).toBeUndefined();
});

test('a cache of half the size goes before a shorter context, and as it is before that', () => {
  const wanted = { ...automatic, sequences: 1 };
  const quantizable = { ...facts, isCacheQuantizable: true };
  const q8 = estimateMemory(facts, { contextTokens: 8192, sequences: 1, cacheType: 'q8_0' }).totalBytes;
  expect(planLoad(quantizable, wanted, bytes(8192, 1) + 0.3 * GB)).toMatchObject({ cacheType: 'f16' });
  expect(planLoad(quantizable, wanted, q8 + 0.3 * GB)).toMatchObject({ contextTokens: 8192, cacheType: 'q8_0' });
  expect(planLoad(facts, wanted, q8 + 0.3 * GB)).toMatchObject({ contextTokens: 4096, cacheType: 'f16' });
});

test('what nobody set is what the model was trained for', () => {
  const wanted = { ...automatic, contextTokens: undefined };
  expect(planLoad(facts, wanted, 64 * GB)).toMatchObject({ contextTokens: 131_072, isReduced: false });
  expect(planLoad(facts, wanted, 12 * GB)).toMatchObject({ contextTokens: 65_536, isReduced: true });
  const { trainedContextTokens: _, ...silent } = facts;
  expect(planLoad(silent, wanted, 64 * GB)).toMatchObject({ contextTokens: 8192, isReduced: false });
});

test('a model that was trained for less is not reduced', () => {
  expect(planLoad({ ...facts, trainedContextTokens: 2048 }, automatic, 64 * GB)).toMatchObject({
    contextTokens: 2048,
    isReduced: false,
  });
});

test('a plan fits, and more memory never makes it smaller', () => {
  const wanted = fc.record({
    contextTokens: fc.integer({ min: 256, max: 1_048_576 }),
    sequences: fc.integer({ min: 1, max: 32 }),
    isAutomatic: fc.boolean(),
  });
  fc.assert(
    fc.property(
      wanted,
      fc.integer({ min: 0, max: 200 * GB }),
      fc.integer({ min: 0, max: 50 * GB }),
      (want, has, more) => {
        const plan = planLoad(facts, want, has);
        if (plan === undefined) return;
        expect(plan.memoryBytes).toBeLessThanOrEqual(has);
        expect(plan.contextTokens).toBeLessThanOrEqual(want.contextTokens);
        const larger = planLoad(facts, want, has + more);
        expect(larger?.contextTokens).toBeGreaterThanOrEqual(plan.contextTokens);
        if (larger?.contextTokens === plan.contextTokens)
          expect(larger.sequences).toBeGreaterThanOrEqual(plan.sequences);
      },
    ),
    runs(300),
  );
});
