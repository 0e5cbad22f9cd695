/** The engine room from outside: what is evaluated again, what runs at once, what is loaded, what is refused. */
import { copyFile, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { RUN_TOKEN_HEADER } from '../../gateway/run-token.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const foundation = fileURLToPath(new URL('../../models/foundation/foundation.gguf', import.meta.url));

let modelsDir: string;
let server: TestServer;
beforeAll(async () => {
  modelsDir = await mkdtemp(join(tmpdir(), 'postern-models-'));
  await copyFile(foundation, join(modelsDir, 'second.gguf'));
  await copyFile(foundation, join(modelsDir, 'enormous.gguf'));
  // A file with holes: it takes no room on the disk, and as much in memory as its length says.
  await truncate(join(modelsDir, 'enormous.gguf'), 2 ** 42);
});
afterEach(async () => {
  await server?.stop();
  await rm(server?.home ?? '', { recursive: true, force: true });
});
afterAll(() => rm(modelsDir, { recursive: true, force: true }));

async function start(settings: Readonly<Record<string, unknown>> = {}): Promise<OpenAI> {
  const home = await mkdtemp(join(tmpdir(), 'postern-home-'));
  await writeFile(join(home, 'settings.json'), JSON.stringify(settings));
  server = await startServer({ home, modelsDir });
  return new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 });
}

interface Health {
  loaded: string[];
  resident_models: { id: string; context_tokens: number; sequences: number; memory_bytes: number }[];
  inflight: Record<string, { running: number; queued: number }>;
}
const health = async () => (await (await fetch(`${server.url}/health`)).json()) as Health;

async function say(openai: OpenAI, messages: ChatCompletionMessageParam[]) {
  const { choices, usage } = await openai.chat.completions.create({
    model: 'foundation',
    messages,
    max_tokens: 8,
    temperature: 0,
  });
  const prompt = usage!.prompt_tokens;
  const cached = usage!.prompt_tokens_details?.cached_tokens ?? 0;
  return { message: choices[0]!.message, prompt, evaluated: prompt - cached };
}

describe('a prompt is evaluated only where it is new', () => {
  test('the second turn of a conversation', async () => {
    const openai = await start();
    const system = { role: 'system' as const, content: 'You are a gardener. '.repeat(20) };
    const first = await say(openai, [system, { role: 'user', content: 'Hello' }]);
    expect(first.evaluated).toBe(first.prompt);
    const second = await say(openai, [
      system,
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: first.message.content },
      { role: 'user', content: 'What is the capital of France?' },
    ]);
    expect(second.prompt).toBeGreaterThan(first.prompt + 8);
    // The new turn and the marks around it; what was answered is there already.
    expect(second.evaluated).toBeLessThan(second.prompt - first.prompt + 3);
  });

  test('four conversations in turns, which begin alike, keep theirs', async () => {
    const openai = await start();
    const system = { role: 'system' as const, content: 'You are a gardener. '.repeat(10) };
    const histories = ['rose', 'oak', 'fern', 'moss'].map((plant): ChatCompletionMessageParam[] => [
      system,
      { role: 'user', content: `Tell me of the ${plant}. `.repeat(20) },
    ]);
    const lengths = [0, 0, 0, 0];
    for (const turn of [0, 1, 2]) {
      for (const [index, history] of histories.entries()) {
        const answer = await say(openai, history);
        const grown = answer.prompt - lengths[index]!;
        if (turn > 0) expect([turn, index, answer.evaluated < grown + 9]).toEqual([turn, index, true]);
        lengths[index] = answer.prompt;
        history.push(answer.message, { role: 'user', content: `And what of turn ${turn}?` });
      }
    }
  });

  test('with one sequence, a conversation in between drives the other out', async () => {
    const openai = await start({ 'inference.concurrentSessions': 1 });
    const one: ChatCompletionMessageParam[] = [{ role: 'user', content: 'Tell me of the rose. '.repeat(20) }];
    const first = await say(openai, one);
    await say(openai, [{ role: 'user', content: 'Something else altogether. '.repeat(20) }]);
    expect((await say(openai, one)).evaluated).toBeGreaterThan(first.prompt - 10);
  });
});

/** Answers until it is left: a grammar that can't end early. */
const endless = {
  model: 'foundation',
  stream: true as const,
  messages: [{ role: 'user' as const, content: 'Hello' }],
  response_format: {
    type: 'json_schema' as const,
    json_schema: { name: 'long', schema: { type: 'array', items: { type: 'string', minLength: 50 }, minItems: 1000 } },
  },
};

describe('calls at once', () => {
  test('continuous batching generates for all of them, and each gets its own answer', async () => {
    const openai = await start({ 'inference.continuousBatching': true });
    const streams = await Promise.all([0, 1, 2].map(() => openai.chat.completions.create(endless)));
    await Promise.all(streams.map((stream) => stream[Symbol.asyncIterator]().next()));
    expect((await health()).inflight['foundation']).toEqual({ running: 3, queued: 0 });
    const france = await say(openai, [{ role: 'user', content: 'What is the capital of France?' }]);
    expect(france.message.content).toBe('The capital of France is P');
    for (const stream of streams) stream.controller.abort();
    await until(async () => Object.keys((await health()).inflight).length === 0);
  });

  test('a client that leaves while its prompt is read frees the model, and its runner lives', async () => {
    const openai = await start();
    await say(openai, [{ role: 'user', content: 'Hello' }]);
    const { pid } = await loadedModel();
    const leave = new AbortController();
    const content = 'one two three four five six seven eight nine ten. '.repeat(190);
    const pending = openai.chat.completions
      .create({ model: 'foundation', messages: [{ role: 'user', content }] }, { signal: leave.signal })
      .catch((error: unknown) => error);
    await until(async () => (await health()).inflight['foundation']?.running === 1);
    leave.abort();
    expect(await pending).toBeInstanceOf(OpenAI.APIUserAbortError);
    await until(async () => Object.keys((await health()).inflight).length === 0);
    await say(openai, [{ role: 'user', content: 'Hello' }]);
    expect((await loadedModel()).pid).toBe(pid);
  });
});

const admin = async (method: string, path: string, body?: object) =>
  fetch(`${server.url}/admin/${path}`, {
    method,
    headers: { [RUN_TOKEN_HEADER]: await server.runToken(), 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

async function loadedModel(): Promise<Record<string, unknown>> {
  const { models } = (await (await admin('GET', 'models')).json()) as { models: Record<string, unknown>[] };
  return models[0] ?? {};
}

describe('what is loaded', () => {
  test('strict keeps one model, flexible several', async () => {
    const strict = await start();
    for (const model of ['foundation', 'second']) {
      await strict.chat.completions.create({ ...endless, stream: false, model, max_tokens: 4 });
    }
    expect((await health()).loaded).toEqual(['second']);
    await server.stop();

    const flexible = await start({ 'inference.evictionPolicy': 'flexible' });
    for (const model of ['foundation', 'second']) {
      await flexible.chat.completions.create({ ...endless, stream: false, model, max_tokens: 4 });
    }
    expect((await health()).loaded).toEqual(['second', 'foundation']);
  });

  test('a model that would make the machine swap is refused in words, and nobody goes for it', async () => {
    const openai = await start();
    await say(openai, [{ role: 'user', content: 'Hello' }]);
    const refused = openai.chat.completions.create({ ...endless, stream: false, model: 'enormous' });
    await expect(refused).rejects.toMatchObject({
      type: 'insufficient_resources',
      message: expect.stringMatching(/'enormous' does not fit into memory.* 4398\.0 GB/),
    });
    expect((await health()).loaded).toEqual(['foundation']);
    await say(openai, [{ role: 'user', content: 'Hello' }]);
  });

  test('more context than was trained for, or than fits, is not set aside', async () => {
    const openai = await start({ 'inference.contextTokens': 1_048_576, 'inference.concurrentSessions': 32 });
    await say(openai, [{ role: 'user', content: 'Hello' }]);
    const [resident] = (await health()).resident_models;
    expect(resident!.context_tokens).toBeLessThan(100_000);
    expect(resident!.memory_bytes).toBeLessThan(2e9);
  });

  test('the owner loads and unloads', async () => {
    await start();
    expect((await admin('POST', 'models/load', { model: 'second' })).status).toBe(200);
    expect(await loadedModel()).toMatchObject({ id: 'second', running: 0, queued: 0, unloads_in_seconds: 900 });
    expect((await admin('POST', 'models/unload', { model: 'second' })).status).toBe(200);
    expect((await health()).loaded).toEqual([]);
    expect((await admin('POST', 'models/load', { model: 'nowhere' })).status).toBe(404);
    expect((await admin('POST', 'models/load', { modal: 'x' })).status).toBe(400);
    expect((await admin('POST', 'models/load', { model: 'enormous' })).status).toBe(503);
  });

  test('a model whose file was removed is listed while it is loaded, and is unloaded', async () => {
    const path = join(modelsDir, 'gone.gguf');
    await start();
    for (const unload of [
      () => admin('POST', 'models/unload', { model: 'gone' }),
      () => fetch(`${server.url}/api/generate`, { method: 'POST', body: '{"model":"gone","keep_alive":0}' }),
    ]) {
      await copyFile(foundation, path);
      expect((await admin('POST', 'models/load', { model: 'gone' })).status).toBe(200);
      await rm(path);
      const listed = await fetch(`${server.url}/api/ps`);
      expect([listed.status, await listed.json()]).toMatchObject([200, { models: [{ name: 'gone' }] }]);
      expect((await unload()).status).toBe(200);
      expect((await health()).loaded).toEqual([]);
    }
  });

  test('and does so in a terminal', async () => {
    await start();
    const models = (...args: string[]) => runCli(['models', ...args], { SVC_HOME: server.home });
    expect(await models('ps')).toMatchObject({ code: 0, stdout: 'no model is loaded\n' });
    expect(await models('load', 'second')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/\nsecond +\d+ MB +4 x \d+ tokens +idle +unloaded in 15 min\n$/),
      stderr: 'Loading second ...\n',
    });
    const listed = await models('ps', '--json');
    expect(JSON.parse(listed.stdout)).toEqual({ models: [expect.objectContaining({ id: 'second', sequences: 4 })] });
    expect(await models('unload', 'second')).toMatchObject({ code: 0, stdout: 'no model is loaded\n' });
    expect(await models('load', 'enormous')).toMatchObject({ code: 1, stderr: expect.stringContaining('4398.0 GB') });
    expect(await models('load', 'nowhere')).toMatchObject({ code: 1, stderr: expect.stringContaining('nowhere') });
    expect(await models('load')).toMatchObject({ code: 2 });
    await server.stop();
    expect(await models('ps')).toMatchObject({ code: 1, stderr: expect.stringContaining('postern serve') });
  });
});
