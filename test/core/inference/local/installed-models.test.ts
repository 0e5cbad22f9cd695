import { appendFile, link, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createInstalledModels } from '../../../../core/inference/local/installed-models.ts';
import { lmStudioModels } from '../../../../core/inference/local/model-sources/lm-studio.ts';
import { ollamaModels } from '../../../../core/inference/local/model-sources/ollama.ts';
import { putFile, putOllamaModel } from '../../../support/app-models.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-catalog-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function put(...paths: string[]): Promise<void> {
  for (const path of paths) {
    await mkdir(dirname(join(folder, 'models', path)), { recursive: true });
    await writeFile(join(folder, 'models', path), 'x'.repeat(10));
  }
}
const catalog = () =>
  createInstalledModels({
    modelsDir: join(folder, 'models'),
    builtInPath: join(folder, 'built-in.gguf'),
    sources: [lmStudioModels(folder), ollamaModels({ userHome: folder, modelsFolder: undefined, platform: 'darwin' })],
  });
const ids = async () => (await catalog().list()).map((model) => model.id);

test('an absent folder holds no models; the built-in one is always there', async () => {
  expect(await ids()).toEqual(['foundation']);
});

test('ids are file names, or paths where two files share one', async () => {
  await put(
    'b.gguf',
    'org/a.gguf',
    'one/same.gguf',
    'two/same.gguf',
    '.hidden.gguf',
    'mmproj-b.gguf',
    'foundation.gguf',
    'x.bin',
  );
  expect(await ids()).toEqual(['foundation', 'a', 'b', 'one/same', 'two/same']);
});

test('the parts of a split file are one model, of their sizes together, opened at the first', async () => {
  await put('big-00002-of-00003.gguf', 'big-00001-of-00003.gguf', 'big-00003-of-00003.gguf');
  const [, big] = await catalog().list();
  expect(big).toMatchObject({ id: 'big', sizeBytes: 30, path: join(folder, 'models', 'big-00001-of-00003.gguf') });
});

test.each([
  ['the first part', 'big-00002-of-00002.gguf'],
  ['a later part', 'big-00001-of-00002.gguf'],
])('a split file is no model while %s is missing', async (_, present) => {
  await put(present);
  expect(await ids()).toEqual(['foundation']);
});

test('links are followed, in a circle too', async () => {
  await put('real/a.gguf');
  await symlink(join(folder, 'models', 'real'), join(folder, 'models', 'linked'));
  await symlink(join(folder, 'models'), join(folder, 'models', 'real', 'circle'));
  const all = await ids();
  expect(all).toContain('foundation');
  expect(all.filter((id) => id.endsWith('a')).length).toBeGreaterThan(0);
});

test('an error does not send back whatever was sent', async () => {
  const refusal = await catalog()
    .resolve('x'.repeat(100_000))
    .catch((error: Error) => error);
  expect((refusal as Error).message.length).toBeLessThan(300);
});

test('an unknown id is refused and names the way to find the known ones', async () => {
  await expect(catalog().resolve('nope')).rejects.toMatchObject({
    code: 'model_not_found',
    field: 'model',
    message: expect.stringContaining('/v1/models'),
  });
});

describe('models of several apps', () => {
  const inLmStudio = (path: string, content: string) => putFile(join(folder, '.lmstudio/models', path), content);
  const inOllama = (name: string, content: string) =>
    putOllamaModel(join(folder, '.ollama/models'), `registry.ollama.ai/library/${name}`, content);
  const origins = async () => (await catalog().list()).map(({ id, origin }) => `${id} ${origin}`);

  test('stand side by side, and each says whose it is', async () => {
    await put('ours.gguf');
    await inLmStudio('org/repo/theirs.gguf', 'weights');
    const digest = await inOllama('llama3.2/1b', 'more weights');
    expect(await origins()).toEqual(['foundation built-in', 'llama3.2:1b ollama', 'ours folder', 'theirs lm-studio']);
    expect(await catalog().resolve('llama3.2:1b')).toMatchObject({ digest });
    expect((await catalog().resolve('theirs')).digest).toBeUndefined();
  });

  test('one that two of them have is there once, and it is ours', async () => {
    await put('same.gguf', 'org/repo/linked.gguf');
    await inLmStudio('org/repo/same.gguf', 'x'.repeat(10));
    await mkdir(join(folder, '.lmstudio/models/other'), { recursive: true });
    await link(join(folder, 'models/org/repo/linked.gguf'), join(folder, '.lmstudio/models/other/name.gguf'));
    expect(await origins()).toEqual(['foundation built-in', 'linked folder', 'same folder']);
  });

  test('two of one name and different sizes are there both', async () => {
    await put('model.gguf');
    await inLmStudio('org/repo/model.gguf', 'another');
    expect(await origins()).toEqual(['foundation built-in', 'model folder', 'org/repo/model lm-studio']);
  });

  test('never one id twice', async () => {
    await put('org/repo/a.gguf', 'a.gguf', 'foundation.gguf', 'llama3.2:latest.gguf');
    await inLmStudio('org/repo/a.gguf', 'of another size');
    await inLmStudio('x/foundation.gguf', 'of another size');
    await inOllama('llama3.2/latest', 'weights');
    await inOllama('foundation/latest', 'weights');
    const all = await ids();
    expect(new Set(all).size).toBe(all.length);
    expect((await catalog().resolve('foundation')).origin).toBe('built-in');
    expect((await catalog().resolve('llama3.2:latest')).origin).toBe('folder');
  });

  test('the default tag may be there or not', async () => {
    await put('ours.gguf');
    await inOllama('llama3.2/latest', 'weights');
    const one = catalog();
    for (const id of ['llama3.2', 'llama3.2:latest']) expect((await one.resolve(id)).id).toBe('llama3.2:latest');
    for (const id of ['ours', 'ours:latest']) expect((await one.resolve(id)).id).toBe('ours');
    await expect(one.resolve('ours:1b')).rejects.toMatchObject({ code: 'model_not_found' });
  });
});

describe('what changes on the disk', () => {
  test('a model that is new is there at once, one that is gone is not', async () => {
    const one = catalog();
    await put('first.gguf');
    await one.resolve('first');
    await put('second.gguf');
    expect((await one.resolve('second')).sizeBytes).toBe(10);
    await rm(join(folder, 'models/first.gguf'));
    await expect(one.resolve('first')).rejects.toMatchObject({ code: 'model_not_found' });
  });

  test('a file that was replaced is described anew', async () => {
    const one = catalog();
    await put('model.gguf', 'big-00001-of-00002.gguf', 'big-00002-of-00002.gguf');
    expect((await one.resolve('model')).sizeBytes).toBe(10);
    expect((await one.resolve('big')).sizeBytes).toBe(20);
    await appendFile(join(folder, 'models/model.gguf'), 'more');
    expect((await one.resolve('model')).sizeBytes).toBe(14);
    await rm(join(folder, 'models/big-00001-of-00002.gguf'));
    await expect(one.resolve('big')).rejects.toMatchObject({ code: 'model_not_found' });
  });
});
