/**
 * What the way to the engine costs: tokens a second through `/v1/chat/completions` against a loop of node-llama-cpp
 * with nothing around it, and four streams at once with continuous batching against one after the other.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeRandomModel } from './engine/random-model.ts';
import { request, streamTimes } from './serving/http-client.ts';
import { builtInModel, end, startProgram, startService, type Service } from './serving/processes.ts';

const TOKENS = 128;
/** Answers shorter than this say little about speed. */
const MIN_TOKENS = 8;
const ROUNDS = 9;
const PROMPT = 'Tell me of the rose, and of all that grows beside it. ';

const SETTINGS = { 'inference.threads': 1, 'inference.contextTokens': 2048, 'inference.gpu': 'off' };

function chat(model: string, seed: number, tokens = TOKENS): Buffer {
  return request('POST', '/v1/chat/completions', {
    model,
    messages: [{ role: 'user', content: `${PROMPT}${seed}` }],
    max_tokens: tokens,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
  });
}

/** Milliseconds a token, after the first of an answer; undefined for one that ended at once. */
async function throughService({ port }: Service, model: string, seed: number): Promise<number | undefined> {
  const { text, firstMs, lastMs } = await streamTimes(port, chat(model, seed));
  const tokens = Number(/"completion_tokens":(\d+)/.exec(text)?.[1]);
  return tokens < MIN_TOKENS ? undefined : (lastMs - firstMs) / (tokens - 1);
}

async function rate(name: string, path: string, modelsDir: string): Promise<void> {
  const service = await startService({ modelsDir, settings: SETTINGS });
  const bare = await startProgram(new URL('./engine/bare-loop.js', import.meta.url), [path]);
  let [oursMs, bareMs] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round += 1) {
    oursMs = Math.min(oursMs, (await throughService(service, name, round)) ?? Infinity);
    const prompt = `<|im_start|>user\n${PROMPT}${round}<|im_end|>\n<|im_start|>assistant\n`;
    bare.process.send({ prompt, tokens: TOKENS });
    const [{ tokenMs }] = (await once(bare.process, 'message')) as [{ tokenMs: number }];
    bareMs = Math.min(bareMs, tokenMs);
  }
  await Promise.all([service.stop(), end(bare.process)]);
  const share = `${Math.round((bareMs / oursMs) * 1000) / 10} %`;
  console.log(`  ${name.padEnd(14)}${perSecond(oursMs)}${perSecond(bareMs)}${share.padStart(10)}`);
}

const perSecond = (milliseconds: number): string => `${(1000 / milliseconds).toFixed(1)} /s`.padStart(12);

/** Seconds for four answers asked for at once. */
async function fourStreams(modelsDir: string, batching: boolean): Promise<number> {
  const settings = { ...SETTINGS, 'inference.continuousBatching': batching };
  const service = await startService({ modelsDir, settings });
  await streamTimes(service.port, chat('random-135m', 0, 4));
  let fastest = Infinity;
  for (let round = 0; round < 3; round += 1) {
    const startedAtMs = performance.now();
    await Promise.all([1, 2, 3, 4].map((seed) => streamTimes(service.port, chat('random-135m', seed + 4 * round, 64))));
    fastest = Math.min(fastest, performance.now() - startedAtMs);
  }
  await service.stop();
  return fastest / 1000;
}

async function main(): Promise<void> {
  const modelsDir = await mkdtemp(join(tmpdir(), 'postern-bench-models-'));
  try {
    const path = join(modelsDir, 'random-135m.gguf');
    const parameters = await writeRandomModel(path, builtInModel);
    console.log(
      `Tokens a second, one thread; random-135m has ${Math.round(parameters / 1e6)} million parameters, Q8_0.`,
    );
    console.log(
      `  ${''.padEnd(14)}${'service'.padStart(12)}${'bare loop'.padStart(12)}${'share'.padStart(10)}   goal 95 %`,
    );
    await rate('random-135m', path, modelsDir);
    await rate('foundation', builtInModel, modelsDir);
    const [off, on] = [await fourStreams(modelsDir, false), await fourStreams(modelsDir, true)];
    console.log(
      `\nFour streams of 64 tokens at once: ${on.toFixed(2)} s with continuous batching, ${off.toFixed(2)} s without: ${(off / on).toFixed(2)} times as fast`,
    );
  } finally {
    await rm(modelsDir, { recursive: true, force: true });
  }
}

await main();
