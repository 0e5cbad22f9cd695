import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { memoryFacts } from '../../../../core/inference/local/memory-facts.ts';
import type { LocalModel } from '../../../../core/inference/catalog.ts';
import { createInstalledModels } from '../../../../core/inference/local/installed-models.ts';
import { createModelDetailsReader } from '../../../../core/inference/local/model-details.ts';
import { openDatabase, type Database } from '../../../../storage/database.ts';
import { ggufBytes } from '../../../support/gguf.ts';

const builtInPath = fileURLToPath(new URL('../../../../models/foundation/foundation.gguf', import.meta.url));

let folder: string;
let database: Database;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-details-'));
  database = openDatabase(join(folder, 'home'));
});
afterEach(async () => {
  database.close();
  await rm(folder, { recursive: true, force: true });
});

const catalog = () => createInstalledModels({ modelsDir: join(folder), builtInPath });
const reader = () => createModelDetailsReader({ database });
const find = (id: string): Promise<LocalModel> => catalog().resolve(id);

async function install(name: string, content: Parameters<typeof ggufBytes>[0]): Promise<void> {
  await writeFile(join(folder, name), ggufBytes(content));
}

test('the built-in model', async () => {
  const details = await reader().read(await find('foundation'));
  expect(details).toMatchObject({
    architecture: 'qwen3',
    parameterCount: 4_657_152,
    parameterSize: '4.66M',
    quantization: 'Q8_0',
    contextTokens: 4096,
    embeddingLength: 256,
    isGenerative: true,
    license: 'mit',
    chatTemplate: expect.stringContaining('<|im_start|>'),
    metadata: { 'qwen3.block_count': 6, 'tokenizer.ggml.add_bos_token': false },
  });
  // Lists of tokens, long texts and what the parser adds are not kept.
  expect(Object.keys(details!.metadata)).not.toContain('tokenizer.ggml.tokens');
  expect(Object.keys(details!.metadata)).not.toContain('tokenizer.chat_template');
  expect(Object.keys(details!.metadata)).not.toContain('tensor_count');
});

test('a file that says little', async () => {
  await install('bare.gguf', { metadata: { 'general.architecture': 'llama' } });
  expect(await reader().read(await find('bare'))).toEqual({
    architecture: 'llama',
    parameterCount: 0,
    parameterSize: '0',
    quantization: 'unknown',
    isGenerative: true,
    memory: memoryFacts({}, 101),
    metadata: { 'general.architecture': 'llama' },
  });
});

test('numbers of 64 bits, an unknown file type, a model for embeddings', async () => {
  await install('embed.gguf', {
    metadata: {
      'general.architecture': 'nomic-bert',
      'general.file_type': 9999,
      'nomic-bert.context_length': 2048n,
      'nomic-bert.pooling_type': 1,
      'nomic-bert.attention.causal': false,
      'tokenizer.ggml.tokens': ['a', 'b'],
    },
    tensors: { a: [1000, 3], b: [7] },
  });
  expect(await reader().read(await find('embed'))).toMatchObject({
    architecture: 'nomic-bert',
    quantization: 'unknown',
    contextTokens: 2048,
    isGenerative: false,
    parameterCount: 3007,
    parameterSize: '3K',
    metadata: { 'nomic-bert.attention.causal': false },
  });
});

test('a model in parts has the parameters of all of them', async () => {
  await install('big-00001-of-00002.gguf', {
    metadata: { 'general.architecture': 'llama', 'general.file_type': 15 },
    tensors: { a: [10, 10] },
  });
  await install('big-00002-of-00002.gguf', { metadata: {}, tensors: { b: [20, 10] } });
  expect(await reader().read(await find('big'))).toMatchObject({ quantization: 'Q4_K_M', parameterCount: 300 });
});

describe('what is no readable GGUF has no details', () => {
  const whole = ggufBytes({ metadata: { 'general.architecture': 'llama' }, tensors: { a: [10, 10] } });
  test.each<[string, Buffer]>([
    ['empty', Buffer.alloc(0)],
    ['another format', Buffer.from('PK\u0003\u0004 and so on')],
    ['cut off in the header', whole.subarray(0, 40)],
    ['more tensors than the file could hold', ggufBytes({ metadata: {}, tensors: {} }).fill(0xff, 8, 16)],
  ])('%s', async (_, bytes) => {
    await writeFile(join(folder, 'broken.gguf'), bytes);
    expect(await reader().read(await find('broken'))).toBeUndefined();
  });

  test('a file that is gone', async () => {
    await install('gone.gguf', { metadata: {} });
    const model = await find('gone');
    await rm(model.path);
    expect(await reader().read(model)).toBeUndefined();
  });

  test('a missing part', async () => {
    await install('big-00001-of-00002.gguf', { metadata: { 'general.architecture': 'llama' } });
    await install('big-00002-of-00002.gguf', { metadata: {} });
    const model = await find('big');
    await rm(join(folder, 'big-00002-of-00002.gguf'));
    expect(await reader().read(model)).toBeUndefined();
  });
});

describe('what was read is kept', () => {
  test('over a restart, even when the file can no longer be read', async () => {
    await install('kept.gguf', { metadata: { 'general.architecture': 'llama' } });
    const model = await find('kept');
    const details = await reader().read(model);
    await rm(model.path);
    expect(await reader().read(model)).toEqual(details);
  });

  test('until the file changes', async () => {
    await install('changed.gguf', { metadata: { 'general.architecture': 'llama' } });
    await reader().read(await find('changed'));
    await install('changed.gguf', { metadata: { 'general.architecture': 'qwen3', 'general.license': 'mit' } });
    expect(await reader().read(await find('changed'))).toMatchObject({ architecture: 'qwen3' });
    await truncate(join(folder, 'changed.gguf'), 10);
    expect(await reader().read(await find('changed'))).toBeUndefined();
  });

  test('unless another version of the program wrote it differently', async () => {
    await install('old.gguf', { metadata: { 'general.architecture': 'llama' } });
    const model = await find('old');
    await reader().read(model);
    database.prepare('UPDATE model_details SET value = ?').run('{"family":"llama"}');
    expect(await reader().read(model)).toMatchObject({ architecture: 'llama' });
  });
});

test('those who ask at once get one reading', async () => {
  const one = reader();
  const model = await find('foundation');
  const [first, second] = await Promise.all([one.read(model), one.read(model)]);
  expect(second).toBe(first);
});

test('a disk that takes nothing costs no answer, now or later', async () => {
  await install('one.gguf', { metadata: { 'general.architecture': 'llama' } });
  await install('two.gguf', { metadata: { 'general.architecture': 'qwen3' } });
  const one = reader();
  database.pragma('query_only = ON');
  expect(await one.read(await find('one'))).toMatchObject({ architecture: 'llama' });
  database.pragma('query_only = OFF');
  expect(await one.read(await find('two'))).toMatchObject({ architecture: 'qwen3' });
});
