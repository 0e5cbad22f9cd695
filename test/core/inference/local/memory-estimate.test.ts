import { fileURLToPath } from 'node:url';
import { gguf } from '@huggingface/gguf';
import fc from 'fast-check';
import { getLlama, GgmlType, GgufInsights, readGgufFileInfo } from 'node-llama-cpp';
import { describe, expect, test } from 'vitest';
import { estimateMemory } from '../../../../core/inference/local/memory-estimate.ts';
import { memoryFacts } from '../../../../core/inference/local/memory-facts.ts';
import { runs } from '../../../support/sampling.ts';

const builtInPath = fileURLToPath(new URL('../../../../models/foundation/foundation.gguf', import.meta.url));

/** The header of Llama 3.1 8B. */
const llama8b = {
  'general.architecture': 'llama',
  'llama.block_count': 32,
  'llama.context_length': 131_072,
  'llama.embedding_length': 4096,
  'llama.feed_forward_length': 14_336,
  'llama.attention.head_count': 32,
  'llama.attention.head_count_kv': 8,
  'llama.vocab_size': 128_256,
};
const GiB = 1024 ** 3;
const cacheOf = (header: Record<string, unknown>, contextTokens: number, sequences = 1) =>
  estimateMemory(memoryFacts(header, 0), { contextTokens, sequences }).cacheBytes;

test.each([
  [512, 1, 'f16'],
  [4096, 1, 'f16'],
  [4096, 2, 'q8_0'],
  [2048, 4, 'f16'],
  [8192, 2, 'f16'],
] as const)(
  'of the built-in model with %i tokens in %i sequences as %s, what the engine itself would reserve',
  async (context, n, cacheType) => {
    const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true, maxThreads: 1 });
    const insights = await GgufInsights.from(await readGgufFileInfo(builtInPath), llama);
    // The engine's own loader does not go beyond what a model was trained for; asked directly, it would.
    const contextSize = Math.min(context, 4096);
    const theirs = await insights.estimateContextResourceRequirementsV2({
      contextSize,
      sequences: n,
      modelGpuLayers: 0,
      ...(cacheType === 'f16' ? {} : { kvCacheKeyType: GgmlType.Q8_0, kvCacheValueType: GgmlType.Q8_0 }),
    });
    const { metadata } = await gguf(builtInPath, { allowLocalFile: true });
    const ours = estimateMemory(memoryFacts({ ...metadata }, 0), { contextTokens: context, sequences: n, cacheType });
    expect((ours.cacheBytes + ours.scratchBytes) / theirs.cpuRam).toBeCloseTo(1, 1);
  },
);

describe('the cache', () => {
  test('of grouped queries is that of the keys there are, not of the heads', () => {
    expect(cacheOf(llama8b, 8192)).toBe(GiB);
    expect(cacheOf(llama8b, 8192, 4)).toBe(4 * GiB);
    const { 'llama.attention.head_count_kv': _, ...everyHead } = llama8b;
    expect(cacheOf(everyHead, 8192)).toBe(4 * GiB);
  });

  test('ends where the training did', () => {
    expect(cacheOf(llama8b, 1_000_000)).toBe(16 * GiB);
  });

  test.each<[string, Record<string, unknown>, number]>([
    [
      'heads whose length is given',
      { 'llama.attention.key_length': 256, 'llama.attention.value_length': 256 },
      2 * GiB,
    ],
    ['a number of keys for each layer', { 'llama.attention.head_count_kv': [8, ...Array(31).fill(0)] }, GiB / 32],
    ['layers that share one', { 'llama.attention.shared_kv_layers': 16 }, GiB / 2],
    ['a model that only reads', { 'llama.attention.causal': false }, 0],
    ['a window that the family ignores', { 'llama.attention.sliding_window': 4096 }, GiB],
    ['nonsense', { 'llama.block_count': -1, 'llama.embedding_length': 'many' }, 0],
  ])('of %s', (_, change, expected) => {
    expect(cacheOf({ ...llama8b, ...change }, 8192)).toBe(expected);
  });

  test('of layers that look through a window is that of the window', () => {
    const window = { 'llama.attention.sliding_window': 1023 };
    const pattern = { 'llama.attention.sliding_window_pattern': 2 };
    // Half of the layers hold 1,023 tokens and a batch, rounded up.
    expect(cacheOf({ ...llama8b, ...window, ...pattern }, 8192)).toBe(GiB / 2 + (GiB / 2 / 8192) * 1536);
    const list = {
      'llama.attention.sliding_window_pattern': Array.from({ length: 32 }, (_, layer) => layer % 2 === 0),
    };
    expect(cacheOf({ ...llama8b, ...window, ...list }, 8192)).toBe(GiB / 2 + (GiB / 2 / 8192) * 1536);
  });

  test('of a recurrent model does not grow', () => {
    const mamba = {
      'general.architecture': 'mamba',
      'mamba.block_count': 48,
      'mamba.embedding_length': 1024,
      'mamba.attention.head_count': 0,
      'mamba.ssm.conv_kernel': 4,
      'mamba.ssm.inner_size': 2048,
      'mamba.ssm.state_size': 16,
    };
    expect(cacheOf(mamba, 256)).toBe(48 * 4 * (3 * 2048 + 16 * 2048));
    expect(cacheOf(mamba, 65_536)).toBe(cacheOf(mamba, 256));
    expect(cacheOf(mamba, 256, 2)).toBe(2 * cacheOf(mamba, 256));
  });

  test('of a model with both kinds of layers has both', () => {
    const mixed = {
      ...llama8b,
      'llama.full_attention_interval': 4,
      'llama.ssm.state_size': 16,
      'llama.ssm.inner_size': 64,
    };
    expect(cacheOf(mixed, 8192)).toBe(GiB / 4 + 24 * 4 * 16 * 64);
  });
});

test('more context or more sequences never take less, and weights count in full', () => {
  const size = fc.integer({ min: 0, max: 20_000 });
  const header = fc.record({
    'x.block_count': fc.integer({ min: 0, max: 100 }),
    'x.context_length': fc.integer({ min: 0, max: 300_000 }),
    'x.embedding_length': size,
    'x.feed_forward_length': fc.oneof(size, fc.array(size, { maxLength: 5 })),
    'x.attention.head_count': fc.integer({ min: 0, max: 128 }),
    'x.attention.head_count_kv': fc.oneof(fc.integer({ min: 0, max: 128 }), fc.array(fc.integer({ min: 0, max: 9 }))),
    'x.attention.sliding_window': fc.integer({ min: 0, max: 10_000 }),
    'x.attention.sliding_window_pattern': fc.integer({ min: 0, max: 8 }),
    'x.ssm.state_size': fc.integer({ min: 0, max: 256 }),
    'x.ssm.inner_size': size,
    'x.vocab_size': fc.integer({ min: 0, max: 300_000 }),
  });
  const need = fc.record({
    contextTokens: fc.integer({ min: 1, max: 300_000 }),
    sequences: fc.integer({ min: 1, max: 32 }),
  });
  fc.assert(
    fc.property(header, need, need, fc.nat(), (values, one, other, weightBytes) => {
      const facts = memoryFacts({ 'general.architecture': 'x', ...values }, weightBytes);
      const smaller = {
        contextTokens: Math.min(one.contextTokens, other.contextTokens),
        sequences: Math.min(one.sequences, other.sequences),
      };
      const estimate = estimateMemory(facts, one);
      expect(estimate.totalBytes).toBeGreaterThanOrEqual(estimateMemory(facts, smaller).totalBytes);
      expect(estimate.totalBytes).toBeGreaterThan(weightBytes);
      expect(Number.isSafeInteger(Math.ceil(estimate.totalBytes))).toBe(true);
    }),
    runs(2000),
  );
});
