import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createModelCatalog } from '../../../core/inference/model-catalog.ts';

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
  createModelCatalog({ modelsDir: join(folder, 'models'), builtInPath: join(folder, 'built-in.gguf') });
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
    param: 'model',
    message: expect.stringContaining('/v1/models'),
  });
});
