/** How long a conversation can get, with a real engine: every list says the same, and what it says holds. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SERVICE } from '../../core/inference/call-owner.ts';
import { startRunner } from '../../core/inference/local/runner-process.ts';
import { cliPath, startServer, type TestServer } from '../support/server.ts';

const foundation = fileURLToPath(new URL('../../models/foundation/foundation.gguf', import.meta.url));
const LONG_TOKENS = 32_768;

let server: TestServer;
let modelsDir: string;

/** The built-in model, whose file says that it was trained for longer conversations than it was. */
async function longModel(): Promise<Buffer> {
  const file = await readFile(foundation);
  const key = 'qwen3.context_length';
  // GGUF: the key, the value's type (4: uint32), the value.
  file.writeUInt32LE(LONG_TOKENS, file.indexOf(key) + key.length + 4);
  return file;
}

beforeAll(async () => {
  modelsDir = await mkdtemp(join(tmpdir(), 'postern-models-'));
  await writeFile(join(modelsDir, 'long.gguf'), await longModel());
  server = await startServer({ modelsDir });
});
afterAll(async () => {
  await server?.stop();
  await rm(modelsDir, { recursive: true, force: true });
});

async function ask(path: string, body?: object): Promise<{ status: number; body: Record<string, unknown> }> {
  const request = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(`${server.url}${path}`, request);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** Each word of it is a token. */
const words = (count: number) => 'word '.repeat(count);
const chat = (count: number, fields: object = { max_tokens: 4 }) =>
  ask('/v1/chat/completions', { model: 'long', messages: [{ role: 'user', content: words(count) }], ...fields });
/** An answer of a few tokens, for which a client wants room all the same. */
const roomy = {
  max_tokens: 6000,
  response_format: { type: 'json_schema', json_schema: { name: 'yes', schema: { const: 'yes' } } },
};
const resident = async () =>
  ((await ask('/health')).body['resident_models'] as { context_tokens: number }[] | undefined)?.[0];

async function toldLimits(): Promise<unknown[]> {
  const one = await ask('/v1/models/long');
  const { body: list } = await ask('/v1/models');
  const listed = (list['data'] as { id: string }[]).find(({ id }) => id === 'long');
  const { body: shown } = await ask('/api/show', { model: 'long' });
  const { body: running } = await ask('/api/ps');
  const { stdout } = await promisify(execFile)(process.execPath, [cliPath, 'models', 'list', '--json'], {
    env: { ...process.env, SVC_HOME: server.home, SVC_MODELS_DIR: modelsDir, HOME: server.home },
  });
  const inCli = (JSON.parse(stdout) as { id: string; context_tokens: number }[]).find(({ id }) => id === 'long');
  return [
    one.body['context_window'],
    one.body['context_length'],
    one.body['max_model_len'],
    (listed as { context_window?: number } | undefined)?.context_window,
    (shown['model_info'] as Record<string, unknown>)['qwen3.context_length'],
    ...(running['models'] as { context_length: number }[]).map(({ context_length: tokens }) => tokens),
    inCli?.context_tokens,
  ];
}

test('what does not fit into the context at first is answered all the same, with no setting', async () => {
  expect(new Set(await toldLimits())).toEqual(new Set([LONG_TOKENS]));
  expect(await chat(10)).toMatchObject({ status: 200 });
  expect((await resident())?.context_tokens).toBe(8192);
  const { status, body } = await chat(2500, roomy);
  expect({ status, body }).toMatchObject({ status: 200 });
  expect((body['usage'] as { prompt_tokens: number }).prompt_tokens).toBeGreaterThan(2500);
  expect((await resident())?.context_tokens).toBe(16_384);
  expect(new Set(await toldLimits())).toEqual(new Set([LONG_TOKENS]));
});

test('one that is too long is refused with the real limit, and why it is that', async () => {
  const { status, body } = await chat(40_000);
  expect(status).toBe(400);
  expect(body['error']).toMatchObject({
    code: 'context_length_exceeded',
    message: expect.stringMatching(/^The prompt has 40\d{3} tokens, .* holds 32768, .* was trained for no more\.$/),
  });
});

test('Ollama’s num_ctx is what the model is loaded with', async () => {
  await ask('/api/generate', { model: 'long', keep_alive: 0 });
  const options = { num_ctx: 20_000, num_predict: 1 };
  const { status } = await ask('/api/generate', { model: 'long', prompt: 'Hi', stream: false, options });
  expect(status).toBe(200);
  expect((await resident())?.context_tokens).toBe(32_768);
});

test('the owner’s setting goes before all that', async () => {
  await server.stop();
  const home = await mkdtemp(join(tmpdir(), 'postern-home-'));
  await writeFile(join(home, 'settings.json'), JSON.stringify({ 'inference.contextTokens': 4096 }));
  server = await startServer({ modelsDir, home });
  const { status, body } = await chat(5000);
  expect(status).toBe(400);
  expect(body['error']).toMatchObject({ message: expect.stringMatching(/holds 4096, .* inference\.contextTokens/) });
  expect(new Set(await toldLimits())).toEqual(new Set([4096]));
});

test('a client that sends it again and again is refused after those who came later are answered', async () => {
  for (let count = 0; count < 10; count += 1) await chat(5000);
  const order: number[] = [];
  const note = ({ status }: { status: number }): unknown => order.push(status);
  await Promise.all([chat(5000).then(note), chat(1).then(note)]);
  expect(order).toEqual([200, 400]);
});

test('a model answers with a quantized cache', async () => {
  const runner = await startRunner({
    entry: new URL('../../dist/core/inference/local/runner/main.js', import.meta.url),
    onExit: () => expect.unreachable(),
    load: {
      path: foundation,
      threads: 1,
      contextTokens: 1024,
      limit: { tokens: 1024, by: 'memory' },
      cacheType: 'q8_0',
      sequences: 2,
      gpu: 'off',
      settings: { temperature: 0 },
      bundle: {},
    },
  });
  const history = [{ type: 'user' as const, text: 'Hello' }];
  const request = { owner: SERVICE, input: { history }, maxOutputTokens: 20 };
  const answer = await runner.generate(request, { onSettled: () => undefined });
  await runner.stop();
  expect(runner.model).toMatchObject({ contextTokens: 1024, sequences: 2 });
  expect(answer.content).toEqual([{ type: 'text', text: expect.stringContaining('Hello') }]);
});
