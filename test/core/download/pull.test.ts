/** Fetching, from what a user names to the file on the disk, against a hub that misbehaves in every way that hubs do. */
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fetchFile } from '../../../core/download/fetch-file.ts';
import { createHttpClient } from '../../../core/download/http-client.ts';
import { createHub } from '../../../core/download/hub.ts';
import { parseModelReference } from '../../../core/download/model-reference.ts';
import { planPull } from '../../../core/download/pull-plan.ts';
import { readRemoteFacts } from '../../../core/download/remote-header.ts';
import { putFile, sha256 as hashOf } from '../../support/app-models.ts';
import { ggufBytes, ggufModel } from '../../support/gguf.ts';
import { startStubHub, type StubHub } from '../../support/stub-hub.ts';

const FILE = 'tiny-Q4_K_M.gguf';
const PATH = `org/r/${FILE}`;

let modelsDir: string;
let stub: StubHub;
/** How long each pause between two attempts was. */
let pauses: number[];
let stop: AbortController;

beforeEach(async () => {
  modelsDir = await mkdtemp(join(tmpdir(), 'postern-download-'));
  stub = await startStubHub();
  pauses = [];
  stop = new AbortController();
});
afterEach(async () => {
  await stub.close();
  await rm(modelsDir, { recursive: true, force: true });
});

interface Options {
  readonly sha256?: string;
  readonly silenceMs?: number;
  readonly endpoint?: string;
  readonly onProgress?: (bytes: number) => void;
}

async function pull(what = 'hf:org/r', { sha256, silenceMs, endpoint, onProgress }: Options = {}): Promise<string[]> {
  const http = createHttpClient(silenceMs === undefined ? {} : { silenceMs });
  const { signal } = stop;
  const hub = createHub({ endpoint: new URL(endpoint ?? stub.url), http, hasToken: false });
  const plan = await planPull(parseModelReference(what, stub.url), { http, hub, modelsDir, sha256, signal });
  await readRemoteFacts(plan, { http, signal });
  const outcomes: string[] = [];
  for (const file of plan.files) {
    const sleep = async (ms: number) => void pauses.push(ms);
    outcomes.push(await fetchFile(file, { http, signal, sleep, onProgress: onProgress ?? (() => undefined) }));
  }
  return outcomes;
}

const offer = (bytes: Buffer, path = FILE) => stub.repositories.set('org/r', { files: { [path]: bytes } });
const installed = (path = PATH) => readFile(join(modelsDir, path));
const everything = async () =>
  (await readdir(modelsDir, { recursive: true, withFileTypes: true }))
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(modelsDir.length + 1));

/** The next download breaks off once so many bytes in all have reached the disk. */
function cutAt(bytes: number): (done: number) => void {
  stub.faults.push({ kind: 'cut', afterBytes: bytes });
  return (done) => {
    if (done === bytes) stub.release();
  };
}

test('a mirror may have a path', async () => {
  offer(ggufModel());
  await expect(pull('hf:org/r', { endpoint: `${stub.url}/mirror/` })).rejects.toMatchObject({ code: 'not_found' });
  expect(stub.requests[0]?.path).toBe('/mirror/api/models/org/r/tree/main?recursive=true');
});

describe('what is interrupted goes on', () => {
  test('from where it broke off, and the pauses grow while nothing comes', async () => {
    const bytes = ggufModel();
    offer(bytes);
    const onProgress = cutAt(300_000);
    stub.faults.push({ kind: 'status', status: 500 }, { kind: 'status', status: 429 });
    expect(await pull('hf:org/r', { onProgress })).toEqual(['fetched']);
    expect(hashOf(await installed())).toBe(hashOf(bytes));
    expect(stub.downloads().map(({ range, sentBytes }) => [range, sentBytes])).toEqual([
      [undefined, 300_000],
      ['bytes=300000-', 0],
      ['bytes=300000-', 0],
      ['bytes=300000-', bytes.length - 300_000],
    ]);
    expect(pauses).toEqual([500, 1000, 2000]);
    expect(await everything()).toEqual([PATH]);
  });

  test.each(['no-ranges', 'wrong-range'] as const)('with a server that answers a range with %s', async (kind) => {
    const bytes = ggufModel();
    offer(bytes);
    const onProgress = cutAt(300_000);
    stub.faults.push({ kind });
    expect(await pull('hf:org/r', { onProgress })).toEqual(['fetched']);
    expect(hashOf(await installed())).toBe(hashOf(bytes));
  });

  test('a server that only fails is given up, and one that goes silent', async () => {
    offer(ggufModel());
    stub.faults.push(...Array.from({ length: 9 }, () => ({ kind: 'status', status: 503 }) as const));
    await expect(pull()).rejects.toMatchObject({ code: 'interrupted', message: expect.stringContaining('503') });
    expect(stub.downloads()).toHaveLength(5);
    expect(await everything()).toEqual([]);
    stub.faults.splice(0, 9, ...Array.from({ length: 9 }, () => ({ kind: 'stall', afterBytes: 0 }) as const));
    await expect(pull('hf:org/r', { silenceMs: 200 })).rejects.toMatchObject({ code: 'interrupted' });
  });

  test('the user may stop at any moment, and what came is kept', async () => {
    offer(ggufModel());
    stub.faults.push({ kind: 'stall', afterBytes: 300_000 });
    const onProgress = (bytes: number): void => {
      if (bytes === 300_000) stop.abort();
    };
    await expect(pull('hf:org/r', { onProgress })).rejects.toMatchObject({ code: 'stopped' });
    expect((await installed(`${PATH}.part`)).length).toBe(300_000);
    stop = new AbortController();
    expect(await pull()).toEqual(['fetched']);
    expect(stub.downloads().at(-1)).toMatchObject({ range: 'bytes=300000-' });
  });

  test('a whole part that was never given its name is not fetched again', async () => {
    const bytes = ggufModel();
    offer(bytes);
    const onProgress = cutAt(300_000);
    stub.faults.push({ kind: 'status', status: 404 });
    await expect(pull('hf:org/r', { onProgress })).rejects.toMatchObject({ code: 'not_found' });
    await writeFile(join(modelsDir, `${PATH}.part`), bytes);
    const before = stub.downloads().length;
    expect(await pull()).toEqual(['fetched']);
    expect(stub.downloads()).toHaveLength(before);
    expect(hashOf(await installed())).toBe(hashOf(bytes));
  });

  test('a state that was damaged costs a fresh start and nothing else', async () => {
    const bytes = ggufModel();
    offer(bytes);
    await mkdir(join(modelsDir, 'org/r'), { recursive: true });
    await writeFile(join(modelsDir, `${PATH}.part`), 'x'.repeat(5000));
    await writeFile(join(modelsDir, `${PATH}.part.state`), 'no database'.repeat(1000));
    expect(await pull()).toEqual(['fetched']);
    expect(hashOf(await installed())).toBe(hashOf(bytes));
    expect(await everything()).toEqual([PATH]);
  });

  test('what has changed meanwhile is fetched from its first byte', async () => {
    offer(ggufModel());
    const onProgress = cutAt(300_000);
    stub.faults.push({ kind: 'status', status: 404 });
    await expect(pull('hf:org/r', { onProgress })).rejects.toMatchObject({ code: 'not_found' });
    const changed = ggufModel(1_000_000, { 'general.name': 'new' });
    offer(changed);
    expect(await pull()).toEqual(['fetched']);
    expect(stub.downloads().at(-1)!.range).toBeUndefined();
    expect(hashOf(await installed())).toBe(hashOf(changed));
  });

  test('of a plain URL by its ETag, whose query nobody writes down', async () => {
    const [first, second] = [ggufModel(), ggufModel().fill(7, 900_000)];
    offer(first);
    const url = `${stub.filesUrl}/${PATH}`;
    const onProgress = cutAt(300_000);
    stub.faults.push({ kind: 'status', status: 404 });
    await expect(pull(`${url}?signature=hidden`, { onProgress })).rejects.toMatchObject({ code: 'not_found' });
    expect(await readFile(join(modelsDir, `${FILE}.part.state`), 'latin1')).not.toContain('hidden');
    offer(second);
    expect(await pull(url)).toEqual(['fetched']);
    expect(stub.downloads().at(-1)).toMatchObject({ ifRange: expect.any(String), sentBytes: second.length });
    expect(hashOf(await installed(FILE))).toBe(hashOf(second));
  });

  test('a page of words in place of the rest does not cost what is there', async () => {
    offer(ggufModel());
    const onProgress = cutAt(300_000);
    stub.faults.push({ kind: 'page' });
    await expect(pull('hf:org/r', { onProgress })).rejects.toMatchObject({ code: 'bad_answer' });
    expect((await installed(`${PATH}.part`)).length).toBe(300_000);
  });
});

describe('what is not what was promised leaves nothing behind', () => {
  test('a wrong byte, in a fresh file and at the end of a resumed one', async () => {
    offer(ggufModel());
    stub.faults.push({ kind: 'flip-a-byte' });
    await expect(pull()).rejects.toMatchObject({ code: 'wrong_content' });
    expect(await everything()).toEqual([]);
    const onProgress = cutAt(300_000);
    stub.faults.push({ kind: 'flip-a-byte' });
    await expect(pull('hf:org/r', { onProgress })).rejects.toMatchObject({ code: 'wrong_content' });
    expect(await everything()).toEqual([]);
  });

  test('a part that somebody changed', async () => {
    offer(ggufModel());
    const onProgress = cutAt(300_000);
    stub.faults.push({ kind: 'status', status: 404 });
    await expect(pull('hf:org/r', { onProgress })).rejects.toMatchObject({ code: 'not_found' });
    const content = await installed(`${PATH}.part`);
    content[1000]! ^= 1;
    await writeFile(join(modelsDir, `${PATH}.part`), content);
    await expect(pull()).rejects.toMatchObject({ code: 'wrong_content' });
    expect(await everything()).toEqual([]);
    expect(await pull()).toEqual(['fetched']);
  });

  test.each<[string, Buffer]>([
    ['a page', Buffer.from('<html>Please log in</html>'.repeat(1000))],
    [
      'half a header',
      ggufBytes({ metadata: { 'general.architecture': 'llama' }, tensors: { a: [10] } }).subarray(0, 70),
    ],
    ['nothing', Buffer.alloc(0)],
  ])('%s in place of a model', async (_, bytes) => {
    offer(bytes);
    await expect(pull()).rejects.toMatchObject({ code: 'wrong_content' });
    expect(await everything()).toEqual([]);
  });

  test("a hash that is not the user's, or that the user knows and nobody else", async () => {
    offer(ggufModel());
    await expect(pull('hf:org/r', { sha256: 'a'.repeat(64) })).rejects.toMatchObject({ code: 'wrong_content' });
    expect(stub.downloads()).toEqual([]);
    await expect(pull(`${stub.filesUrl}/${PATH}`, { sha256: 'a'.repeat(64) })).rejects.toMatchObject({
      code: 'wrong_content',
    });
    expect(await everything()).toEqual([]);
  });

  test.each([
    '../../evil.gguf',
    'a/../../evil.gguf',
    '.hidden/x.gguf',
    '/etc/x.gguf',
    'a\\b.gguf',
    'x\u001b[2J.gguf',
    'a//b.gguf',
    `${'x'.repeat(250)}.gguf`,
  ])('a file that calls itself %j', async (path) => {
    offer(ggufModel(), path);
    await expect(pull()).rejects.toMatchObject({ message: expect.stringContaining('lead out of the models folder') });
    expect(await everything()).toEqual([]);
    expect(stub.downloads()).toEqual([]);
  });

  test('a link in the place of the part', async () => {
    offer(ggufModel());
    const victim = await putFile(join(modelsDir, 'victim'), 'precious');
    await mkdir(join(modelsDir, 'org/r'), { recursive: true });
    await symlink(victim, join(modelsDir, `${PATH}.part`));
    await expect(pull()).rejects.toMatchObject({ code: 'ELOOP' });
    expect(await readFile(victim, 'utf8')).toBe('precious');
  });

  test('another file of that name stays', async () => {
    offer(ggufModel());
    await putFile(join(modelsDir, PATH), 'something else');
    await expect(pull()).rejects.toMatchObject({ code: 'occupied' });
    expect((await installed()).toString()).toBe('something else');
  });
});
