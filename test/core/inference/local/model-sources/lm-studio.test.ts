import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lmStudioModels } from '../../../../../core/inference/local/model-sources/lm-studio.ts';
import { putFile } from '../../../../support/app-models.ts';

let userHome: string;
beforeEach(async () => {
  userHome = await mkdtemp(join(tmpdir(), 'postern-lm-studio-'));
});
afterEach(() => rm(userHome, { recursive: true, force: true }));

const put = (path: string, content = 'weights') => putFile(join(userHome, path), content);
const ids = async () => (await lmStudioModels(userHome).find()).map(({ id }) => id).toSorted();

test('no LM Studio, no models', async () => {
  expect(await ids()).toEqual([]);
});

test('its folders, new and old, and the one that its settings name', async () => {
  await put('.lmstudio/models/lmstudio-community/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf');
  await put('.lmstudio/models/lmstudio-community/gemma-GGUF/mmproj-gemma.gguf');
  await put('.lmstudio/models/mlx-community/Qwen3-8B-4bit/model.safetensors');
  await put('.lmstudio/models/someone/downloading_big.gguf.part');
  await put('.cache/lm-studio/models/TheBloke/old-GGUF/old.gguf');
  await put('.lmstudio/settings.json', JSON.stringify({ downloadsFolder: join(userHome, 'disk'), other: 1 }));
  await put('disk/org/repo/on-disk.gguf');
  expect(await ids()).toEqual(['Qwen3-8B-Q4_K_M', 'old', 'on-disk']);
});

test('a home that was moved', async () => {
  await put('.lmstudio-home-pointer', `${join(userHome, 'moved')}\n`);
  await put('moved/models/org/repo/moved.gguf');
  await put('moved/settings.json', JSON.stringify({ downloadsFolder: join(userHome, 'disk') }));
  await put('disk/org/repo/on-disk.gguf');
  expect(await ids()).toEqual(['moved', 'on-disk']);
});

test.each(['{', 'null', '{"downloadsFolder":7}', '{"downloadsFolder":"relative"}', '{"downloadsFolder":"/nowhere/x"}'])(
  'settings that say %s change nothing',
  async (settings) => {
    await put('.lmstudio/settings.json', settings);
    await put('.lmstudio-home-pointer', 'relative');
    await put('.lmstudio/models/org/repo/here.gguf');
    expect(await ids()).toEqual(['here']);
  },
);
