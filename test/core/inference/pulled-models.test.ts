import { expect, test } from 'vitest';
import type { LocalModel } from '../../../core/inference/catalog.ts';
import { findPulled } from '../../../core/inference/local/pulled-models.ts';

const MODELS_DIR = '/home/ada/models';
const modelAt = (path: string, sizeBytes = 1): LocalModel => ({
  id: path,
  kind: 'local',
  origin: 'folder',
  isBuiltIn: false,
  modifiedAtMs: 0,
  path,
  sizeBytes,
});
const models = [
  modelAt(`${MODELS_DIR}/Org/Two-GGUF/m-Q8_0.gguf`, 2),
  modelAt(`${MODELS_DIR}/Org/Two-GGUF/m-Q4_K_M.gguf`),
  modelAt(`${MODELS_DIR}/org/split/Q4_0/big-Q4_0-00001-of-00002.gguf`),
  modelAt(`${MODELS_DIR}/org/unclear/one.gguf`),
  modelAt(`${MODELS_DIR}/org/unclear/two.gguf`),
  modelAt(`${MODELS_DIR}/org/two.gguf`),
  modelAt('/usr/share/ollama/org/foreign/m.gguf'),
];

test.each([
  ['hf.co/org/two-gguf', 'm-Q4_K_M.gguf'],
  ['hf.co/org/two-gguf:latest', 'm-Q4_K_M.gguf'],
  ['huggingface.co/Org/Two-GGUF:q8_0', 'm-Q8_0.gguf'],
  ['hf.co/Org/Two-GGUF:m-Q8_0.gguf', 'm-Q8_0.gguf'],
  ['hf.co/org/split', 'big-Q4_0-00001-of-00002.gguf'],
  ['hf.co/org/unclear:two', 'two.gguf'],
])('%s is %s, as it would be where it is fetched', (name, file) => {
  expect(findPulled(models, name, MODELS_DIR)?.path.endsWith(`/${file}`)).toBe(true);
});

test.each([
  'hf.co/org/two-gguf:Q5_0',
  'hf.co/org/unclear',
  'hf.co/org/none',
  'hf.co/org/foreign',
  'hf.co/org',
  'hf.co/../models/org/split',
  'org/split',
  'm-Q8_0',
])('%s is none of them', (name) => {
  expect(findPulled(models, name, MODELS_DIR)).toBeUndefined();
});
