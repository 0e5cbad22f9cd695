import { expect, test } from 'vitest';
import type { LocalModel, ModelDetails } from '../../../../core/inference/catalog.ts';
import { encodeRunning, encodeShow, encodeTag } from '../../../../gateway/wire/ollama/models.ts';
import { ollamaFaults } from '../../../support/ollama-schema.ts';

const model: LocalModel = {
  kind: 'local',
  id: 'tiny',
  path: '/somewhere/private/tiny.gguf',
  sizeBytes: 123,
  modifiedAtMs: 1_700_000_000_000,
  origin: 'folder',
  isBuiltIn: false,
};
const details: ModelDetails = {
  architecture: 'llama',
  parameterCount: 7_241_732_096,
  parameterSize: '7.2B',
  quantization: 'Q4_K_M',
  contextTokens: 32_768,
  isGenerative: true,
  chatTemplate: '{{ messages }}',
  license: 'apache-2.0',
  metadata: {
    'general.architecture': 'llama',
    'general.name': 'Tiny Llama',
    'general.basename': 'Tiny',
    'general.sampling.temp': 0.6,
    'general.sampling.top_k': 20,
    'llama.context_length': 32_768,
    'llama.embedding_length': 4096,
  },
};
const digest = `sha256:${'a'.repeat(64)}`;

test('a tag has what the published schema and the contract ask for', () => {
  const tag = encodeTag({ model, details, digest });
  expect(ollamaFaults('ListResponse', { models: [tag] })).toEqual([]);
  expect(tag).toEqual({
    name: 'tiny',
    model: 'tiny',
    modified_at: '2023-11-14T22:13:20.000Z',
    size: 123,
    digest,
    details: {
      parent_model: '',
      format: 'gguf',
      family: 'llama',
      families: ['llama'],
      parameter_size: '7.2B',
      quantization_level: 'Q4_K_M',
    },
  });
});

test('what is not known yet is said in a form that clients survive', () => {
  const tag = encodeTag({ model, details: undefined, digest: undefined }) as { digest: string };
  expect(ollamaFaults('ListResponse', { models: [tag] })).toEqual([]);
  expect(tag).toMatchObject({ digest: 'sha256:pending', details: { family: '', families: [], parameter_size: '' } });
  // Ollama's command line shows the first twelve characters, and fails where there are fewer.
  expect(tag.digest.length).toBeGreaterThanOrEqual(12);
});

test('a running model has its context window, and no end', () => {
  const running = encodeRunning({ model, details, digest }, { contextTokens: 8192, expiresAtMs: undefined }) as {
    expires_at: string;
  };
  expect(ollamaFaults('PsResponse', { models: [running] })).toEqual([]);
  expect(running).toMatchObject({ name: 'tiny', size: 123, digest, context_length: 8192 });
  expect(Date.parse(running.expires_at)).toBeGreaterThan(Date.parse('2900-01-01'));
  const expiring = encodeRunning({ model, details, digest }, { contextTokens: 8192, expiresAtMs: 1_700_000_000_000 });
  expect(expiring).toMatchObject({ expires_at: '2023-11-14T22:13:20.000Z' });
});

test('show describes the model, and not where it lies', () => {
  const shown = encodeShow({ model, details, contextTokens: 16_384, announcesTools: false }) as { model_info: object };
  expect(ollamaFaults('ShowResponse', shown)).toEqual([]);
  expect(shown).toMatchObject({
    capabilities: ['completion'],
    parameters: 'temperature 0.6\ntop_k 20\nnum_ctx 16384',
    modelfile: 'FROM tiny\nPARAMETER temperature 0.6\nPARAMETER top_k 20\nPARAMETER num_ctx 16384\n',
    template: '{{ messages }}',
    license: 'apache-2.0',
    details: { family: 'llama', parameter_size: '7.2B', quantization_level: 'Q4_K_M' },
  });
  expect(shown.model_info).toEqual({
    'general.architecture': 'llama',
    'general.parameter_count': 7_241_732_096,
    'general.sampling.temp': 0.6,
    'general.sampling.top_k': 20,
    'llama.context_length': 16_384,
    'llama.embedding_length': 4096,
  });
  expect(JSON.stringify(shown)).not.toContain('private');
});

test('a model that only embeds does not claim to complete', () => {
  const embedding = { ...details, isGenerative: false };
  for (const announcesTools of [false, true]) {
    const shown = encodeShow({ model, details: embedding, contextTokens: undefined, announcesTools });
    expect(shown).toMatchObject({ capabilities: ['embedding'] });
  }
});
