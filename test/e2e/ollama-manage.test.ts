/** What Ollama's own client does to models: copies and removes them, and is told in its words what can't be done. */
import { existsSync, mkdirSync } from 'node:fs';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ollama } from 'ollama';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli, startServer, type TestServer } from '../support/server.ts';

const builtIn = new URL('../../models/foundation/foundation.gguf', import.meta.url).pathname;

let folder: string;
let modelsDir: string;
let server: TestServer;
let ollama: Ollama;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-manage-'));
  modelsDir = join(folder, 'models');
  mkdirSync(modelsDir);
  await copyFile(builtIn, join(modelsDir, 'mine.gguf'));
  const home = join(folder, 'home');
  mkdirSync(home, { mode: 0o700 });
  await runCli(['settings', 'set', 'models.aliases', '{"*": "mine"}'], { SVC_HOME: home });
  server = await startServer({ home, modelsDir });
  ollama = new Ollama({ host: server.url });
});
afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

const names = async () => (await ollama.list()).models.map(({ name }) => name);
const say = async (model: string) =>
  (await ollama.generate({ model, prompt: 'What is the capital of France?', stream: false })).response;

test('a name that only stands for a model removes none', async () => {
  await expect(ollama.delete({ model: 'nope' })).rejects.toThrow(/another name of 'mine': remove the model by its id/);
  expect(existsSync(join(modelsDir, 'mine.gguf'))).toBe(true);
});

test('a copy answers, and stays when the first name goes', async () => {
  expect(await say('mine')).toContain('Paris');
  await ollama.copy({ source: 'mine', destination: 'second:latest' });
  expect(await names()).toEqual(['foundation', 'mine', 'second']);
  await ollama.delete({ model: 'mine' });
  expect(await names()).toEqual(['foundation', 'second']);
  expect(existsSync(join(modelsDir, 'mine.gguf'))).toBe(false);
  expect((await ollama.ps()).models.map(({ name }) => name)).not.toContain('mine');
  expect(await say('second')).toContain('Paris');
  await expect(say('mine')).rejects.toMatchObject({ status_code: 404 });
});

test.each<[string, number, RegExp, () => Promise<unknown>]>([
  ['the built-in model is not removed', 400, /is a part of Postern/, () => ollama.delete({ model: 'foundation' })],
  ['nor one that is not there', 404, /not installed/, () => ollama.delete({ model: 'nope' })],
  ['nor over a model', 400, /has this name/, () => ollama.copy({ source: 'foundation', destination: 'Foundation' })],
  ['nor out of the folder', 400, /letters/, () => ollama.copy({ source: 'foundation', destination: '../x' })],
  ['nothing is created', 501, /makes no models/, () => ollama.create({ model: 'x', from: 'foundation' })],
  ['nothing is pushed', 501, /uploads no models/, () => ollama.push({ model: 'foundation' })],
])('%s', async (_, status, message, request) => {
  await expect(request()).rejects.toMatchObject({ status_code: status, error: expect.stringMatching(message) });
  expect(existsSync(builtIn)).toBe(true);
});

test('all of it is for the owner alone', async () => {
  for (const [method, path] of [
    ['DELETE', 'delete'],
    ['POST', 'copy'],
    ['POST', 'create'],
    ['POST', 'push'],
  ]) {
    const headers = { via: '1.1 proxy' };
    const answer = await fetch(`${server.url}/api/${path}`, { method: method!, headers, body: '{"model":"mine"}' });
    expect([path, answer.status, await answer.json()]).toEqual([path, 403, { error: expect.any(String) }]);
  }
});
