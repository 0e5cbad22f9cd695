/** Names that clients ask for whatever is installed, as their owner has them understood: without a restart. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../support/wait.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
  await rm(server.home, { recursive: true, force: true });
});

const alias = (...args: string[]) =>
  runCli(['models', 'alias', ...args], { SVC_HOME: server.home, HOME: server.home, OLLAMA_MODELS: '' });
const openai = () => new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 });
const messages = [{ role: 'user' as const, content: 'Hello' }];
const ask = async (model: string): Promise<string> =>
  (await openai().chat.completions.create({ model, messages, max_tokens: 1 })).model;

test('a name that nobody has is refused with the command that helps, and the command helps at once', async () => {
  await expect(ask('gpt-4o')).rejects.toThrow('postern models alias gpt-4o foundation');
  expect(await alias('gpt-4o', 'foundation')).toMatchObject({ code: 0 });
  expect(await ask('gpt-4o')).toBe('foundation');
  await expect(ask('gpt-4o-mini')).rejects.toThrow("'gpt-4o-mini' is not installed");
});

test('a pattern lets clients of every style in, and their counting, too', async () => {
  expect(await alias('claude-*', 'FOUNDATION')).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('foundation'),
  });
  const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'any', maxRetries: 0 });
  const model = 'claude-opus-4-5';
  expect(await anthropic.messages.create({ model, messages, max_tokens: 1 })).toMatchObject({ model: 'foundation' });
  expect(await anthropic.messages.countTokens({ model, messages })).toMatchObject({
    input_tokens: expect.any(Number) as number,
  });
  const ollama = new Ollama({ host: server.url });
  expect(await ollama.show({ model })).toMatchObject({ details: { format: 'gguf' } });
  expect(await ollama.generate({ model, prompt: 'Hello', options: { num_predict: 1 } })).toMatchObject({ done: true });
  expect(await openai().responses.create({ model, input: 'Hello', max_output_tokens: 16 })).toMatchObject({
    model: 'foundation',
  });
});

test('a star alone is every other name; taken away, it is none', async () => {
  expect(await alias('*', 'foundation')).toMatchObject({ code: 0 });
  expect(await ask('whatever')).toBe('foundation');
  expect(await alias('*', '--remove')).toMatchObject({ code: 0 });
  await expect(ask('whatever')).rejects.toThrow('not installed');
  expect(await alias('*', '--remove')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('stands for no model'),
  });
  expect(JSON.parse((await alias('--json')).stdout)).toEqual({ 'gpt-4o': 'foundation', 'claude-*': 'foundation' });
  expect((await alias()).stdout).toBe('NAME      MODEL\ngpt-4o    foundation\nclaude-*  foundation\n');
});

test('what would never be asked for, or can answer nothing, is no alias', async () => {
  expect(await alias('foundation', 'foundation')).toMatchObject({ code: 1, stderr: expect.stringContaining('itself') });
  expect(await alias('x', 'nothing')).toMatchObject({ code: 1, stderr: expect.stringContaining('models list') });
  expect(await alias('x')).toMatchObject({ code: 2 });
  expect(await alias('--', '\u001b[31mred', 'foundation')).toMatchObject({ code: 1 });
  expect(await alias('constructor', '--remove')).toMatchObject({ code: 1 });
});

test('a file of settings that cannot be used changes nothing while the service runs, and is named once', async () => {
  const path = join(server.home, 'settings.json');
  const good = await readFile(path, 'utf8');
  await writeFile(path, '{"models.aliases": {"a": 1}}');
  expect(await ask('gpt-4o')).toBe('foundation');
  expect(await ask('gpt-4o')).toBe('foundation');
  await until(() => server.log().includes('All settings stay as they were'));
  expect(server.log().match(/models\.aliases: expected names and the models they stand for/g)).toHaveLength(1);
  await writeFile(path, good.replace('gpt-4o', 'gpt-5'));
  expect(await ask('gpt-5')).toBe('foundation');
  await expect(ask('gpt-4o')).rejects.toThrow('not installed');
});
