import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ollamaModels } from '../../../../../core/inference/local/model-sources/ollama.ts';
import { putFile, putOllamaModel, sha256 } from '../../../../support/app-models.ts';

let userHome: string;
let folder: string;
beforeEach(async () => {
  userHome = await mkdtemp(join(tmpdir(), 'postern-ollama-'));
  folder = join(userHome, '.ollama/models');
});
afterEach(() => rm(userHome, { recursive: true, force: true }));

const LIBRARY = 'registry.ollama.ai/library';
const find = (modelsFolder?: string) => ollamaModels({ userHome, modelsFolder, platform: 'darwin' }).find();
const ids = async () => (await find()).map(({ id }) => id).toSorted();
const manifest = (layers: unknown, more: object = {}) => JSON.stringify({ schemaVersion: 2, layers, ...more });
const layer = (kind: string, digest: string, size = 4) => ({
  mediaType: `application/vnd.ollama.image.${kind}`,
  digest,
  size,
});

test('a model is its blob, under the name that Ollama prints', async () => {
  const digest = await putOllamaModel(folder, `${LIBRARY}/llama3.2/1b`, 'weights');
  await putOllamaModel(folder, 'registry.ollama.ai/someone/tuned/latest', 'other');
  await putOllamaModel(folder, 'hf.co/bartowski/Qwen-GGUF/Q4_K_M', 'third');
  expect(await ids()).toEqual(['hf.co/bartowski/Qwen-GGUF:Q4_K_M', 'llama3.2:1b', 'someone/tuned:latest']);
  expect((await find()).find(({ id }) => id === 'llama3.2:1b')).toMatchObject({
    longId: 'registry.ollama.ai/library/llama3.2:1b',
    path: join(folder, 'blobs', digest.replace(':', '-')),
    sizeBytes: 7,
    digest,
  });
});

test('two tags of one model are two names of one file', async () => {
  await putOllamaModel(folder, `${LIBRARY}/llama3.2/3b`, 'weights');
  await putOllamaModel(folder, `${LIBRARY}/llama3.2/latest`, 'weights');
  const [one, other] = await find();
  expect(one!.path).toBe(other!.path);
  expect(await ids()).toEqual(['llama3.2:3b', 'llama3.2:latest']);
});

test('no folder, no models; OLLAMA_MODELS goes before the home', async () => {
  expect(await ids()).toEqual([]);
  await putOllamaModel(folder, `${LIBRARY}/at-home/latest`, 'a');
  await putOllamaModel(join(userHome, 'elsewhere'), `${LIBRARY}/elsewhere/latest`, 'b');
  expect((await find(join(userHome, 'elsewhere'))).map(({ id }) => id)).toEqual(['elsewhere:latest']);
  expect((await find('')).map(({ id }) => id)).toEqual(['at-home:latest']);
});

test('a projector is left aside, a model with an adapter is left out', async () => {
  await putOllamaModel(folder, `${LIBRARY}/llava/latest`, 'text', [{ kind: 'projector', content: 'eyes' }]);
  await putOllamaModel(folder, `${LIBRARY}/tuned/latest`, 'base', [{ kind: 'adapter', content: 'lora' }]);
  await putOllamaModel(folder, `${LIBRARY}/embed/latest`, 'bert', [{ kind: 'params', content: '{}' }]);
  expect(await ids()).toEqual(['embed:latest', 'llava:latest']);
});

describe('newer versions', () => {
  const put = async (name: string, content: string): Promise<void> => {
    const blob = await putFile(join(folder, 'blobs', `sha256-${sha256(content)}`), content);
    const path = join(folder, 'manifests-v2', name);
    await mkdir(join(path, '..'), { recursive: true });
    await symlink(blob, path);
  };

  test('link their manifests to blobs, and these go before older ones', async () => {
    await putOllamaModel(folder, `${LIBRARY}/old/latest`, 'old weights');
    await putOllamaModel(folder, `${LIBRARY}/new/latest`, 'outdated');
    await putFile(join(folder, 'blobs', `sha256-${sha256('new!')}`), 'new!');
    await put(`${LIBRARY}/new/latest`, manifest([layer('model', `sha256:${sha256('new!')}`)]));
    expect((await find()).map(({ id, sizeBytes }) => [id, sizeBytes])).toEqual([
      ['new:latest', 4],
      ['old:latest', 11],
    ]);
  });

  test('have lists of one model for several engines', async () => {
    await putFile(join(folder, 'blobs', `sha256-${sha256('gguf')}`), 'gguf');
    const child = manifest([layer('model', `sha256:${sha256('gguf')}`)]);
    await putFile(join(folder, 'blobs', `sha256-${sha256(child)}`), child);
    const list = (manifests: unknown[]) =>
      manifest(undefined, { mediaType: 'application/vnd.ollama.manifest.list.v2+json', manifests });
    const mlx = { runner: 'mlx', layers: [layer('tensor', `sha256:${'a'.repeat(64)}`)] };
    await put(`${LIBRARY}/linked/latest`, list([mlx, { runner: 'ollama', digest: `sha256:${sha256(child)}` }]));
    await put(`${LIBRARY}/inline/latest`, list([{ runner: 'llamacpp', ...JSON.parse(child) }]));
    await put(`${LIBRARY}/foreign/latest`, list([mlx]));
    await put(`${LIBRARY}/dangling/latest`, list([{ runner: 'ollama', digest: `sha256:${'b'.repeat(64)}` }]));
    expect(await ids()).toEqual(['inline:latest', 'linked:latest']);
  });
});

describe('what makes no sense is not there, and does no harm', () => {
  const secret = 'outside';
  const digest = `sha256:${sha256(secret)}`;
  test.each<[string, string]>([
    ['not JSON', '{'],
    ['nothing', ''],
    ['null', 'null'],
    ['no layers', '{}'],
    ['layers that are none', manifest('many')],
    ['a layer without a digest', manifest([{ mediaType: 'application/vnd.ollama.image.model' }])],
    ['a digest that is a path', manifest([layer('model', '../../../outside', secret.length)])],
    ['a digest with a path behind it', manifest([layer('model', `${digest}/../../../../outside`, secret.length)])],
    ['a digest of another kind', manifest([layer('model', 'md5:abc')])],
    ['a blob that is not there', manifest([layer('model', `sha256:${'c'.repeat(64)}`)])],
    ['a blob of another size', manifest([layer('model', `sha256:${sha256('part')}`, 5)])],
    ['two models', manifest([layer('model', `sha256:${sha256('part')}`), layer('model', `sha256:${sha256('part')}`)])],
    ['more than any manifest has', JSON.stringify('x'.repeat(2_000_000))],
  ])('%s', async (_, content) => {
    await putFile(join(userHome, 'outside'), secret);
    await putFile(join(folder, 'blobs', `sha256-${sha256('part')}`), 'part');
    await putFile(join(folder, 'manifests', LIBRARY, 'bad/latest'), content);
    await putOllamaModel(folder, `${LIBRARY}/good/latest`, 'good');
    expect(await ids()).toEqual(['good:latest']);
  });

  test('a blob that is a link, wherever it leads', async () => {
    await putOllamaModel(folder, `${LIBRARY}/linked/latest`, secret);
    const blob = join(folder, 'blobs', `sha256-${sha256(secret)}`);
    await rename(blob, join(userHome, 'outside'));
    await symlink(join(userHome, 'outside'), blob);
    expect(await ids()).toEqual([]);
    await rm(join(userHome, 'outside'));
    expect(await ids()).toEqual([]);
  });

  test('a manifest that is a link out of the folder, or to nothing', async () => {
    await putOllamaModel(folder, `${LIBRARY}/good/latest`, 'good');
    const outside = join(userHome, 'manifest');
    await rename(join(folder, 'manifests', LIBRARY, 'good/latest'), outside);
    await symlink(outside, join(folder, 'manifests', LIBRARY, 'good/latest'));
    expect(await ids()).toEqual([]);
    await rm(outside);
    expect(await ids()).toEqual([]);
  });

  test('pipes, folders in place of files, files in place of folders, hidden files', async () => {
    await putOllamaModel(folder, `${LIBRARY}/good/latest`, 'good');
    const models = join(folder, 'manifests', LIBRARY);
    execFileSync('mkfifo', [join(models, 'good/pipe')]);
    await mkdir(join(models, 'good/folder'));
    await putFile(join(models, 'file'), '{}');
    await putFile(join(models, 'good/.DS_Store'), '{}');
    await putFile(join(folder, 'manifests/.DS_Store'), '');
    expect(await ids()).toEqual(['good:latest']);
  });

  test('a folder that may not be read', async () => {
    await putOllamaModel(folder, `${LIBRARY}/good/latest`, 'good');
    await chmod(join(folder, 'manifests'), 0);
    // Root may read everything.
    expect((await ids()).length).toBe(process.getuid?.() === 0 ? 1 : 0);
    await chmod(join(folder, 'manifests'), 0o700);
  });
});
