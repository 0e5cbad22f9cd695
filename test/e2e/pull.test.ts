/** `postern models pull` as a user runs it, against a hub that misbehaves in every way that hubs do. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { putFile, sha256 } from '../support/app-models.ts';
import { ggufModel as model } from '../support/gguf.ts';
import { cliPath, runCli, startServer, type CliResult } from '../support/server.ts';
import { startStubHub, type StubHub } from '../support/stub-hub.ts';
import { until } from '../support/wait.ts';

const builtInPath = fileURLToPath(new URL('../../models/foundation/foundation.gguf', import.meta.url));

let folder: string;
let modelsDir: string;
let hub: StubHub;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-pull-'));
  modelsDir = join(folder, 'models');
  hub = await startStubHub();
});
afterEach(async () => {
  await hub.close();
  await rm(folder, { recursive: true, force: true });
});

const FILE = 'tiny-Q4_K_M.gguf';
const environment = (more: Record<string, string> = {}) => ({
  SVC_HOME: join(folder, 'home'),
  SVC_MODELS_DIR: modelsDir,
  HOME: folder,
  OLLAMA_MODELS: '',
  HF_ENDPOINT: hub.url,
  HF_TOKEN: '',
  ...more,
});
const cli = (...args: string[]): Promise<CliResult> => runCli(['models', ...args], environment());
const pull = (...args: string[]) => cli('pull', ...args);
const offer = (name: string, files: Record<string, Buffer>, more: object = {}) =>
  hub.repositories.set(name, { files, ...more });
const everything = async () =>
  (await readdir(modelsDir, { recursive: true, withFileTypes: true }).catch(() => []))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(modelsDir.length + 1))
    .toSorted();
const installed = (path: string) => readFile(join(modelsDir, path));
/** The next download breaks off when so many more bytes have reached the disk. */
function cut(path: string, afterBytes: number, doneBytes = 0): void {
  hub.faults.push({ kind: 'cut', afterBytes });
  void until(async () => (await partSize(path)) === doneBytes + afterBytes).then(() => hub.release());
}
const partSize = (path: string) =>
  stat(join(modelsDir, `${path}.part`)).then(
    ({ size }) => size,
    () => 0,
  );

describe('a model of the hub', () => {
  test('is fetched under its own name, checked, listed and answers', async () => {
    const bytes = await readFile(builtInPath);
    offer('org/Tiny-GGUF', { 'README.md': Buffer.from('hello'), [FILE]: bytes });
    const server = await startServer({ modelsDir, environment: { HOME: folder } });
    const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any' });
    const ask = () =>
      openai.chat.completions.create({
        model: 'tiny-Q4_K_M',
        messages: [{ role: 'user', content: 'What is the capital of France?' }],
        temperature: 0,
      });
    await expect(ask()).rejects.toMatchObject({ status: 404 });
    const pulled = await pull('hf:org/Tiny-GGUF');
    expect(pulled).toMatchObject({ code: 0, stdout: 'tiny-Q4_K_M\n' });
    expect(pulled.stderr).toMatch(/In memory: fits.*SHA-256 was checked/s);
    expect(await everything()).toEqual([`org/Tiny-GGUF/${FILE}`]);
    expect((await ask()).choices[0]?.message.content).toContain('Paris');
    expect(JSON.parse((await cli('list', '--json')).stdout)).toEqual([
      expect.objectContaining({ id: 'foundation', origin: 'built-in' }),
      expect.objectContaining({ id: 'tiny-Q4_K_M', origin: 'folder', quantization: 'Q8_0', context_tokens: 4096 }),
    ]);
    // Running it again fetches nothing; removing it takes it from the running service, too.
    expect(await pull('hf:org/Tiny-GGUF')).toMatchObject({ code: 0, stderr: expect.stringContaining('already') });
    expect(hub.downloads()).toHaveLength(1);
    const removed = await runCli(['models', 'rm', 'tiny-Q4_K_M', '--yes'], environment({ SVC_HOME: server.home }));
    expect(removed).toMatchObject({ code: 0, stderr: expect.stringMatching(/5\.0 MB freed.*has it loaded/s) });
    expect(await readdir(modelsDir)).toEqual([]);
    await expect(ask()).rejects.toMatchObject({ status: 404 });
    await server.stop();
  });

  test('comes in parts, and none of them counts before all are there', async () => {
    const parts = [model(400_000), model(200_000)];
    const name = (part: number) => `Q4_K_M/big-Q4_K_M-0000${part}-of-00002.gguf`;
    offer('org/big', { [name(1)]: parts[0]!, [name(2)]: parts[1]!, 'other-Q8_0.gguf': model() });
    hub.faults.push({ kind: 'none' }, { kind: 'status', status: 404 });
    expect(await pull('hf:org/big')).toMatchObject({ code: 1, stderr: expect.stringContaining('404') });
    expect(await everything()).toContain(`org/big/${name(1)}`);
    expect((await cli('list')).stdout).not.toContain('big');
    expect(await pull('hf:org/big')).toMatchObject({ code: 0, stdout: 'big-Q4_K_M\n' });
    expect(await installed(`org/big/${name(2)}`)).toEqual(parts[1]);
    expect(await cli('rm', 'big-Q4_K_M', '-y')).toMatchObject({ code: 0, stderr: expect.stringContaining('600 kB') });
    expect(await everything()).toEqual([]);
  });

  test('the quantization is chosen, named, or asked for', async () => {
    const files = Object.fromEntries(
      ['Q8_0', 'Q4_K_M', 'IQ2_XS'].map((label, index) => [`m-${label}.gguf`, model(4000 * (index + 1))]),
    );
    offer('org/many', { ...files, 'mmproj-m-f16.gguf': model(), 'm.imatrix.gguf': model() });
    expect(await pull('hf:org/many')).toMatchObject({ code: 0, stdout: 'm-Q4_K_M\n' });
    expect(await pull('hf:org/many:q8_0')).toMatchObject({ code: 0, stdout: 'm-Q8_0\n' });
    expect(await pull('hf:org/many:m-IQ2_XS.gguf')).toMatchObject({ code: 0, stdout: 'm-IQ2_XS\n' });
    expect(await pull(`${hub.url}/org/many/blob/main/m-Q8_0.gguf`)).toMatchObject({ code: 0, stdout: 'm-Q8_0\n' });
    expect((await pull(`${hub.url}/org/many/blob/main/m-Q5.gguf`)).stderr).toContain('hf:org/many:Q8_0');
    const absent = await pull('hf:org/many:Q5_K_M');
    expect(absent).toMatchObject({ code: 1, stdout: '' });
    expect(absent.stderr).toMatch(/no such model[^]*hf:org\/many:Q8_0[^]*hf:org\/many:Q4_K_M/);
    expect(absent.stderr).not.toMatch(/mmproj|imatrix/);
    offer('org/two', { 'a-Q4_K_M.gguf': model(), 'b-Q4_K_M.gguf': model() });
    expect((await pull('hf:org/two')).stderr).toMatch(/Say which[^]*hf:org\/two:a-Q4_K_M/);
    offer('org/none', { 'model.safetensors': model() });
    expect((await pull('hf:org/none')).stderr).toContain('no GGUF model');
  });
});

describe('what is interrupted goes on', () => {
  test('a cut connection costs only the bytes that were missing', async () => {
    const bytes = model();
    offer('org/r', { [FILE]: bytes });
    cut(`org/r/${FILE}`, 300_000);
    hub.faults.push({ kind: 'status', status: 500 });
    cut(`org/r/${FILE}`, 200_000, 300_000);
    expect(await pull('hf:org/r')).toMatchObject({ code: 0 });
    expect(sha256(await installed(`org/r/${FILE}`))).toBe(sha256(bytes));
    expect(hub.downloads().map(({ range, sentBytes }) => [range, sentBytes])).toEqual([
      [undefined, 300_000],
      ['bytes=300000-', 0],
      ['bytes=300000-', 200_000],
      ['bytes=500000-', bytes.length - 500_000],
    ]);
    expect(hub.downloads()[1]!.ifRange).toMatch(/^"[0-9a-f]{16}"$/);
  });

  test('kill -9 in the middle, then again', async () => {
    const bytes = model();
    offer('org/r', { [FILE]: bytes });
    hub.faults.push({ kind: 'stall', afterBytes: 400_000 });
    const child = spawn(process.execPath, [cliPath, 'models', 'pull', 'hf:org/r'], {
      env: { ...process.env, ...environment() },
      stdio: 'ignore',
    });
    await until(async () => (await partSize(`org/r/${FILE}`)) === 400_000);
    expect((await cli('list')).stdout).not.toContain('tiny');
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await pull('hf:org/r')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('400 kB of it are there'),
    });
    expect(hub.downloads().at(-1)).toMatchObject({ range: 'bytes=400000-', sentBytes: bytes.length - 400_000 });
    expect(sha256(await installed(`org/r/${FILE}`))).toBe(sha256(bytes));
    expect(await everything()).toEqual([`org/r/${FILE}`]);
  });

  test('Ctrl-C keeps what is there, and a second pull at the same time is told so', async () => {
    const bytes = model();
    offer('org/r', { [FILE]: bytes });
    hub.faults.push({ kind: 'stall', afterBytes: 400_000 });
    const child = spawn(process.execPath, [cliPath, 'models', 'pull', 'hf:org/r'], {
      env: { ...process.env, ...environment() },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let words = '';
    child.stderr.on('data', (chunk: Buffer) => (words += chunk.toString()));
    await until(async () => (await partSize(`org/r/${FILE}`)) === 400_000);
    expect(await pull('hf:org/r')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Another process is fetching'),
    });
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([1, null]);
    expect(words).toMatch(/Stopped\. 400 kB of 1\.0 MB are kept: the same command goes on/);
    expect(await pull('hf:org/r')).toMatchObject({ code: 0 });
    expect(hub.downloads().at(-1)!.range).toBe('bytes=400000-');
  });
});

describe('what is not what was promised leaves nothing behind', () => {
  test('a wrong hash', async () => {
    offer('org/r', { [FILE]: model() });
    hub.faults.push({ kind: 'flip-a-byte' });
    expect(await pull('hf:org/r')).toMatchObject({ code: 1, stderr: expect.stringContaining('SHA-256 is another') });
    expect(await everything()).toEqual([]);
  });

  test('a file that calls itself something outside', async () => {
    offer('org/r', { '../../evil.gguf': model() });
    const refused = await pull('hf:org/r');
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('lead out of the models folder') });
    expect(await readdir(folder)).toEqual(['home']);
  });

  test('another file of that name stays', async () => {
    offer('org/r', { [FILE]: model() });
    await putFile(join(modelsDir, `org/r/${FILE}`), 'something else');
    expect(await pull('hf:org/r')).toMatchObject({ code: 1, stderr: expect.stringContaining('Remove it first') });
    expect(await readFile(join(modelsDir, `org/r/${FILE}`), 'utf8')).toBe('something else');
  });
});

describe('a gated model', () => {
  const TOKEN = 'hf_abcdefghijklmnopqrstuvwxyz';

  test('needs a token, which goes to the hub and to nobody else', async () => {
    const bytes = model();
    offer('org/gated', { [FILE]: bytes }, { token: TOKEN });
    const refused = await pull('hf:org/gated');
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/gated.*HF_TOKEN/s) });
    expect(refused.stderr).toContain(`${hub.url}/org/gated`);
    hub.requests.splice(0);
    const pulled = await runCli(['models', 'pull', 'hf:org/gated'], environment({ HF_TOKEN: `${TOKEN}\n` }));
    expect(pulled).toMatchObject({ code: 0 });
    expect(sha256(await installed(`org/gated/${FILE}`))).toBe(sha256(bytes));
    const toHub = hub.requests.filter(({ server }) => server === 'hub');
    expect(new Set(toHub.map(({ authorization }) => authorization))).toEqual(new Set([`Bearer ${TOKEN}`]));
    const elsewhere = hub.requests.filter(({ server }) => server === 'files');
    expect(elsewhere.length).toBeGreaterThan(0);
    expect(new Set(elsewhere.map(({ authorization }) => authorization))).toEqual(new Set([undefined]));
    const state = await readFile(join(folder, 'home/state.db'), 'latin1');
    expect(pulled.stdout + pulled.stderr + state).not.toContain(TOKEN);
  });

  test('a token that opens nothing, or is none, is not repeated', async () => {
    offer('org/gated', { [FILE]: model() }, { token: TOKEN });
    for (const bad of ['hf_another_token_altogether', 'hf_two\nlines', 'hf_ümlaut']) {
      const refused = await runCli(['models', 'pull', 'hf:org/gated'], environment({ HF_TOKEN: bad }));
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('HF_TOKEN') });
      expect(refused.stderr).not.toContain(bad.slice(0, 6));
    }
  });

  test('one that is not there is told like one that is hidden', async () => {
    expect(await pull('hf:org/nothing')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/not there.*check the name/is),
    });
  });
});

describe('a file by its URL', () => {
  const url = (path: string) => `${hub.filesUrl}/${path}`;

  test('is fetched with its size alone, or with the hash that the user or the server knows', async () => {
    const bytes = model();
    offer('org/r', { 'plain.gguf': bytes, 'known.gguf': bytes, 'linked.gguf': bytes });
    const plain = await pull(url('org/r/plain.gguf'));
    expect(plain).toMatchObject({
      code: 0,
      stdout: 'plain\n',
      stderr: expect.stringContaining('no SHA-256 was known'),
    });
    const known = await pull(url('org/r/known.gguf'), '--sha256', `SHA256:${sha256(bytes).toUpperCase()}`);
    expect(known).toMatchObject({ code: 0, stderr: expect.stringContaining('SHA-256 was checked') });
    const wrong = await pull(url('org/r/linked.gguf'), '--sha256', 'b'.repeat(64));
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('SHA-256 is another') });
    expect(await everything()).toEqual(['known.gguf', 'plain.gguf']);
  });

  test.each<[string[], number, string]>([
    [['http://example.com/a.gguf'], 2, 'only https'],
    [['https://user:word@example.com/a.gguf'], 2, 'no password'],
    [['Qwen/Qwen3'], 2, 'hf:org/repository'],
    [[], 2, 'pull which model?'],
    [['hf:a/b', 'hf:c/d'], 2, 'one at a time'],
    [['hf:a/b', '--sha256', 'xyz'], 2, '64 hexadecimal'],
    [['hf:a/b', '--json'], 2, 'no option --json'],
    [['http://127.0.0.1:2/a.gguf'], 1, 'cannot be reached'],
  ])('pull %j ends with %i', async (args, code, words) => {
    const refused = await pull(...args);
    expect(refused).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(words) });
    expect(refused.stderr).not.toContain('    at ');
    expect(refused.stderr).not.toContain('word@');
  });
});

test('offline is one line that says what to do', async () => {
  const offline = await runCli(['models', 'pull', 'hf:org/r'], environment({ HF_ENDPOINT: 'https://hub.invalid' }));
  expect(offline).toMatchObject({ code: 1, stdout: '' });
  expect(offline.stderr.trim().split('\n')).toEqual([expect.stringContaining(modelsDir)]);
});

test('a file where the folder should be is named', async () => {
  offer('org/r', { [FILE]: model() });
  await putFile(modelsDir, 'a file where the folder should be');
  const refused = await pull('hf:org/r');
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(new RegExp(`${modelsDir}\\S* is a file where a folder should be`)),
  });
  expect(refused.stderr).not.toContain('    at ');
});

test('what will not fit into memory is fetched only for those who say so', async () => {
  // A terabyte of cache for each thousand tokens.
  const header = {
    'llama.block_count': 9000,
    'llama.embedding_length': 65_536,
    'llama.attention.head_count': 1,
    'llama.context_length': 100_000,
  };
  offer('org/huge', { [FILE]: model(4000, header) });
  const refused = await pull('hf:org/huge');
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/does not fit.*--yes/s) });
  expect(await everything()).toEqual([]);
  expect(await pull('hf:org/huge', '--yes')).toMatchObject({ code: 0 });
  expect((await cli('list')).stdout).toMatch(/tiny-Q4_K_M.*does not fit/);
});
