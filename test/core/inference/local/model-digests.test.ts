import { createHash } from 'node:crypto';
import type * as FileSystem from 'node:fs';
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LocalModel } from '../../../../core/inference/catalog.ts';
import { createInstalledModels } from '../../../../core/inference/local/installed-models.ts';
import { createModelDigests, type ModelDigests } from '../../../../core/inference/local/model-digests.ts';
import { openDatabase, type Database } from '../../../../storage/database.ts';
import { until } from '../../../support/wait.ts';

/** Every opening of a model file, and how many are open. */
const reads = vi.hoisted(() => ({ paths: new Array<string>(), open: 0, mostOpen: 0 }));

vi.mock('node:fs', async (importOriginal) => {
  const fs = await importOriginal<typeof FileSystem>();
  const createReadStream: typeof fs.createReadStream = (path, options) => {
    reads.paths.push(String(path));
    reads.open += 1;
    reads.mostOpen = Math.max(reads.mostOpen, reads.open);
    return fs.createReadStream(path, options).once('close', () => (reads.open -= 1));
  };
  return { ...fs, createReadStream };
});

const builtInPath = fileURLToPath(new URL('../../../../models/foundation/foundation.gguf', import.meta.url));

let folder: string;
let database: Database;
const opened: ModelDigests[] = [];

beforeEach(async () => {
  reads.paths = [];
  reads.mostOpen = 0;
  folder = await mkdtemp(join(tmpdir(), 'postern-digests-'));
  database = openDatabase(join(folder, 'home'));
});
afterEach(async () => {
  for (const one of opened.splice(0)) one.close();
  database.close();
  await rm(folder, { recursive: true, force: true });
});

function digests(atOnceBytes?: number): ModelDigests {
  const made = createModelDigests({ database, ...(atOnceBytes === undefined ? {} : { atOnceBytes }) });
  opened.push(made);
  return made;
}

const find = (id: string): Promise<LocalModel> => createInstalledModels({ modelsDir: folder, builtInPath }).resolve(id);
const sha256 = (...texts: string[]) => `sha256:${createHash('sha256').update(texts.join('')).digest('hex')}`;
const install = (name: string, text: string) => writeFile(join(folder, name), text);
const entries = () => database.prepare<[], { path: string; value: string }>('SELECT * FROM model_digests').all();

test('the built-in model has its digest at once', async () => {
  expect(await digests().find(await find('foundation'))).toBe(
    'sha256:6e718eb4f387f68aa4ff3122a7fb7900234ba626a0cb3c26bc962ffc5b62bcb9',
  );
});

test('a model in parts is read in their order', async () => {
  await install('big-00002-of-00002.gguf', 'second');
  await install('big-00001-of-00002.gguf', 'first');
  expect(await digests().find(await find('big'))).toBe(sha256('first', 'second'));
});

describe('a large model', () => {
  test('has none until it was read in the background, then for good', async () => {
    await install('large.gguf', 'weights');
    const model = await find('large');
    const some = digests(0);
    expect(await some.find(model)).toBeUndefined();
    expect(await until(() => some.find(model))).toBe(sha256('weights'));
    await rm(model.path);
    expect(await digests(0).find(model)).toBe(sha256('weights'));
  });

  test('comes after smaller ones, and each is read once', async () => {
    const sizes = [3, 1, 2];
    for (const size of sizes) await install(`m${size}.gguf`, 'x'.repeat(size * 1000));
    const models = await Promise.all(sizes.map((size) => find(`m${size}`)));
    const some = digests(0);
    // The first is begun with before the others are known; asking again adds nothing.
    for (const model of [...models, ...models]) expect(await some.find(model)).toBeUndefined();
    await until(() => entries().length === 3);
    expect(reads.paths.map((path) => path.slice(folder.length + 1))).toEqual(['m3.gguf', 'm1.gguf', 'm2.gguf']);
    expect(reads.mostOpen).toBe(1);
  });

  test('is left when the service ends, and nothing is kept of it', async () => {
    await install('large.gguf', 'x'.repeat(10_000_000));
    const model = await find('large');
    const some = digests(0);
    expect(await some.find(model)).toBeUndefined();
    some.close();
    expect(await some.find(model)).toBeUndefined();
    expect(entries()).toEqual([]);
    expect(await until(() => digests(Infinity).find(model))).toBe(sha256('x'.repeat(10_000_000)));
  });
});

describe('what changes', () => {
  test('has a new digest', async () => {
    await install('model.gguf', 'one');
    expect(await digests().find(await find('model'))).toBe(sha256('one'));
    await appendFile(join(folder, 'model.gguf'), ' and more');
    expect(await digests().find(await find('model'))).toBe(sha256('one and more'));
    expect(entries()).toHaveLength(1);
  });

  test('while it is read, or is gone, has none', async () => {
    await install('model.gguf', 'one');
    const model = await find('model');
    await appendFile(model.path, ' and more');
    expect(await digests().find(model)).toBeUndefined();
    await rm(model.path);
    expect(await digests().find(model)).toBeUndefined();
    expect(entries()).toEqual([]);
  });
});

test('those who ask at once get one reading', async () => {
  await install('model.gguf', 'one');
  const model = await find('model');
  const some = digests();
  expect(await Promise.all([some.find(model), some.find(model)])).toEqual([sha256('one'), sha256('one')]);
  expect(await some.find(model)).toBe(sha256('one'));
  expect(reads.paths).toEqual([model.path]);
});

test('a disk that takes nothing costs no answer, and stops no reading', async () => {
  await install('one.gguf', 'one');
  await install('two.gguf', 'three');
  const slow = digests(1);
  const quick = digests();
  database.pragma('query_only = ON');
  const [one, two] = [await find('one'), await find('two')];
  expect(await quick.find(one)).toBe(sha256('one'));
  await until(async () => (await slow.find(one)) !== undefined && (await slow.find(two)) !== undefined);
  reads.paths = [];
  expect([await slow.find(one), await slow.find(two)]).toEqual([sha256('one'), sha256('three')]);
  expect(reads.paths).toEqual([]);
  expect(entries()).toEqual([]);
});
