/** Models that only another app's folders hold, answered by a started server and read by official clients. */
import { copyFile, mkdir, mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RUN_TOKEN_HEADER } from '../../gateway/run-token.ts';
import { putOllamaModel } from '../support/app-models.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';

const builtInPath = fileURLToPath(new URL('../../models/foundation/foundation.gguf', import.meta.url));

let userHome: string;
let server: TestServer;
let digest: string;
let before: readonly string[];

/** Everything under a folder, with the time of its last change. */
async function snapshot(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return Promise.all(names.toSorted().map(async (name) => `${name} ${(await stat(join(folder, name))).mtimeMs}`));
}

beforeAll(async () => {
  userHome = await mkdtemp(join(tmpdir(), 'postern-apps-'));
  const weights = await readFile(builtInPath);
  const lmStudio = join(userHome, '.lmstudio/models/org/tiny-GGUF/tiny-Q8_0.gguf');
  await mkdir(dirname(lmStudio), { recursive: true });
  await copyFile(builtInPath, lmStudio);
  digest = await putOllamaModel(join(userHome, '.ollama/models'), 'registry.ollama.ai/library/tiny/latest', weights);
  before = await snapshot(userHome);
  server = await startServer({ environment: { HOME: userHome, OLLAMA_MODELS: '' } });
});
afterAll(async () => {
  await server?.stop();
  await rm(userHome, { recursive: true, force: true });
});

const question = [{ role: 'user' as const, content: 'What is the capital of France?' }];

test('an OpenAI client lists them, each with its owner, and gets an answer from each', async () => {
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any' });
  const { data } = await openai.models.list();
  expect(data.map(({ id, owned_by }) => `${id} ${owned_by}`)).toEqual([
    'foundation postern',
    'tiny-Q8_0 lm-studio',
    'tiny:latest ollama',
  ]);
  for (const model of ['tiny-Q8_0', 'tiny:latest', 'tiny']) {
    expect((await openai.models.retrieve(model)).object).toBe('model');
    const { choices } = await openai.chat.completions.create({ model, messages: question, temperature: 0 });
    expect(choices[0]?.message.content).toContain('Paris');
  }
});

test("an Ollama client finds them as in Ollama's own list, the digest known at once", async () => {
  const ollama = new Ollama({ host: server.url });
  const { models } = await ollama.list();
  expect(models.find(({ name }) => name === 'tiny:latest')).toMatchObject({
    digest,
    details: { family: 'qwen3', quantization_level: 'Q8_0' },
  });
  const shown = await ollama.show({ model: 'tiny' });
  expect(shown.capabilities).toEqual(['completion']);
  const { message } = await ollama.chat({ model: 'tiny', messages: question, options: { temperature: 0 } });
  expect(message.content).toContain('Paris');
});

test('nothing in their folders has changed', async () => {
  expect(await snapshot(userHome)).toEqual(before);
});

test.runIf(process.platform === 'linux')('what a runner takes is what was estimated, within a factor', async () => {
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any' });
  await openai.chat.completions.create({ model: 'foundation', messages: question });
  const headers = { [RUN_TOKEN_HEADER]: await server.runToken() };
  const { models } = (await (await fetch(`${server.url}/admin/models`, { headers })).json()) as {
    models: { id: string; pid: number; memory_bytes: number }[];
  };
  const { pid, memory_bytes: estimated } = models.find(({ id }) => id === 'foundation')!;
  const resident = /VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))![1];
  expect(estimated / (Number(resident) * 1024)).toBeGreaterThan(0.67);
  expect(estimated / (Number(resident) * 1024)).toBeLessThan(2);
});

test('none are looked for when the owner says so', async () => {
  const home = await mkdtemp(join(tmpdir(), 'postern-home-'));
  await runCli(['settings', 'set', 'models.discover', 'false'], { SVC_HOME: home });
  const blind = await startServer({ home, environment: { HOME: userHome, OLLAMA_MODELS: '' } });
  const openai = new OpenAI({ baseURL: `${blind.url}/v1`, apiKey: 'any' });
  expect((await openai.models.list()).data.map(({ id }) => id)).toEqual(['foundation']);
  await blind.stop();
  await rm(home, { recursive: true, force: true });
});
