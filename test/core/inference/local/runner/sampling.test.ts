import { expect, test } from 'vitest';
import { SERVICE } from '../../../../../core/inference/call-owner.ts';
import { bundleSampling, resolveSampling } from '../../../../../core/inference/local/runner/sampling.ts';
import type { GenerateRequest, SamplingDefaults } from '../../../../../core/inference/local/runner/protocol.ts';

const request = (fields: Partial<GenerateRequest> = {}): GenerateRequest => ({
  owner: SERVICE,
  input: { rawText: '' },
  ...fields,
});
const styled = request({ providerOptions: { postern: { styleDefaults: { temperature: 0.7 } } } });
const temperature = (asked: GenerateRequest, settings: SamplingDefaults = {}, bundle: SamplingDefaults = {}) =>
  resolveSampling(asked, settings, bundle).temperature;

test('the request, then the settings, then the model, then the style, then the engine', () => {
  expect(temperature(request())).toBe(0.8);
  expect(temperature(styled)).toBe(0.7);
  expect(temperature(styled, {}, { temperature: 0.6 })).toBe(0.6);
  expect(temperature(styled, { temperature: 0.5 }, { temperature: 0.6 })).toBe(0.5);
  expect(temperature({ ...styled, temperature: 0 }, { temperature: 0.5 }, { temperature: 0.6 })).toBe(0);
});

test('each field by itself', () => {
  const options = { postern: { minP: 0.2 } };
  expect(
    resolveSampling(request({ topK: 7, providerOptions: options }), { topP: 0.4 }, { repetitionPenalty: 1.3 }),
  ).toEqual({
    temperature: 0.8,
    topK: 7,
    topP: 0.4,
    minP: 0.2,
    repetitionPenalty: 1.3,
  });
});

test('what a model file recommends, where it says so in numbers', () => {
  const metadata = { general: { sampling: { temp: 0.6, top_k: 20, min_p: 'none' } } };
  expect(bundleSampling(metadata)).toEqual({ temperature: 0.6, topK: 20 });
  expect(bundleSampling({ general: {} })).toEqual({});
  expect(bundleSampling(undefined)).toEqual({});
});
