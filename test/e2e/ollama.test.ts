/** Ollama's own client against a started server and the built-in model. */
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ollama, type ChatResponse, type GenerateResponse, type Message } from 'ollama';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ggufBytes } from '../support/gguf.ts';
import { ollamaFaults, parseLines } from '../support/ollama-schema.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

let server: TestServer;
let modelsDir: string;
let ollama: Ollama;

/** Over the size that is read while a list is waited for. */
const LARGE_BYTES = 40 * 1024 * 1024;

beforeAll(async () => {
  modelsDir = await mkdtemp(join(tmpdir(), 'postern-models-'));
  const header = { 'general.architecture': 'llama', 'general.file_type': 15, 'llama.context_length': 8192 };
  await writeFile(join(modelsDir, 'large.gguf'), ggufBytes({ metadata: header, tensors: { a: [1000, 1500] } }));
  await truncate(join(modelsDir, 'large.gguf'), LARGE_BYTES);
  await writeFile(join(modelsDir, 'broken.gguf'), 'GGUF and then nonsense');
  server = await startServer({ modelsDir });
  ollama = new Ollama({ host: server.url });
});
afterAll(async () => {
  await server?.stop();
  await rm(modelsDir, { recursive: true, force: true });
});

const ask = (content: string): Message[] => [{ role: 'user', content }];

const weatherTool = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Get the weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
const shellTool = {
  type: 'function',
  function: {
    name: 'shell_run',
    description: 'Run a command',
    parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  },
};

type Answer = Pick<ChatResponse | GenerateResponse, 'done' | 'done_reason' | 'total_duration'> & GenerateResponse;

/** No answer leaves out what it cost. */
function expectMetrics(answer: Answer | ChatResponse): void {
  expect(answer.done).toBe(true);
  expect(answer.prompt_eval_count).toBeGreaterThan(0);
  expect(answer.eval_count).toBeGreaterThan(0);
  for (const duration of ['load_duration', 'prompt_eval_duration', 'eval_duration'] as const) {
    expect(Number.isInteger(answer[duration]) && answer[duration] >= 0).toBe(true);
  }
  expect(answer.load_duration + answer.prompt_eval_duration + answer.eval_duration).toBe(answer.total_duration);
}

async function collect<Line>(lines: AsyncIterable<Line>): Promise<Line[]> {
  const all: Line[] = [];
  for await (const one of lines) all.push(one);
  return all;
}

describe('chat with the official client', () => {
  test('answers whole', async () => {
    const answer = await ollama.chat({ model: 'foundation', messages: ask('What is the capital of France?') });
    expect(answer).toMatchObject({
      model: 'foundation',
      message: { role: 'assistant', content: 'The capital of France is Paris.' },
      done_reason: 'stop',
    });
    expect(Math.abs(Date.now() - Date.parse(String(answer.created_at)))).toBeLessThan(60_000);
    expectMetrics(answer);
  });

  test('streams, and ends with what it cost', async () => {
    const stream = await ollama.chat({ model: 'foundation', messages: ask('Count from 1 to 20.'), stream: true });
    const lines = await collect(stream);
    expect(lines.map((one) => one.message.content).join('')).toBe(
      '1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20',
    );
    expect(lines.length).toBeGreaterThan(20);
    expect(lines.slice(0, -1).every((one) => !one.done)).toBe(true);
    expectMetrics(lines.at(-1)!);
  });

  test('a tool loop: the call with its arguments as an object, the result by the name of the tool', async () => {
    const messages = ask('What is the weather in Paris?');
    const first = await ollama.chat({ model: 'foundation', messages, tools: [weatherTool] });
    expect(first.message.tool_calls).toMatchObject([
      { function: { name: 'get_weather', arguments: { city: 'Paris' } } },
    ]);
    expectMetrics(first);
    const result = { role: 'tool', tool_name: 'get_weather', content: 'sunny, 18 C' };
    const second = await ollama.chat({
      model: 'foundation',
      messages: [...messages, first.message, result],
      tools: [weatherTool],
    });
    expect(second.message.content).toBe('The tool returned: sunny, 18 C');
  });

  test('two calls in one turn stream whole, one line each; results come back in any order', async () => {
    const messages = ask("What is the weather in Paris and also run the command 'ls'.");
    const tools = [weatherTool, shellTool];
    const lines = await collect(await ollama.chat({ model: 'foundation', messages, tools, stream: true }));
    const calls = lines.flatMap((one) => one.message.tool_calls ?? []);
    expect(calls).toMatchObject([
      { function: { index: 0, name: 'get_weather', arguments: { city: 'Paris' } } },
      { function: { index: 1, name: 'shell_run', arguments: { command: 'ls' } } },
    ]);
    const after = async (results: Message[]) => {
      const turn = { role: 'assistant', content: '', tool_calls: calls };
      const { message } = await ollama.chat({ model: 'foundation', messages: [...messages, turn, ...results], tools });
      return message.content;
    };
    const weather = { role: 'tool', tool_name: 'get_weather', content: 'sunny' };
    const shell = { role: 'tool', tool_name: 'shell_run', content: 'a.txt' };
    const said = await after([weather, shell]);
    expect(said).toContain('sunny');
    expect(await after([shell, weather])).toBe(said);
  });

  test('format: JSON, and a schema', async () => {
    const free = await ollama.chat({
      model: 'foundation',
      messages: ask('Give me JSON with name Ada and age 36.'),
      format: 'json',
    });
    expect(JSON.parse(free.message.content)).toEqual({ name: 'Ada', age: 36 });
    const held = await ollama.chat({
      model: 'foundation',
      messages: ask('Hello'),
      options: { num_predict: 60 },
      format: {
        type: 'object',
        properties: { kind: { enum: ['greeting'] }, polite: { type: 'boolean' } },
        required: ['kind', 'polite'],
        additionalProperties: false,
      },
    });
    expect(JSON.parse(held.message.content)).toEqual({ kind: 'greeting', polite: expect.any(Boolean) });
  });

  test('thoughts stand apart, whole and in a stream, and think: false does without', async () => {
    const request = { model: 'foundation', messages: ask('Think step by step: what is 3+4?') };
    const whole = await ollama.chat({ ...request, think: true });
    expect(whole.message.thinking).toContain('3');
    expect(whole.message.content).not.toBe('');
    const lines = await collect(await ollama.chat({ ...request, think: 'high', stream: true }));
    expect(lines.map((one) => one.message.thinking ?? '').join('')).toBe(whole.message.thinking);
    expect(lines.map((one) => one.message.content).join('')).toBe(whole.message.content);
    const hurried = await ollama.chat({ ...request, think: false });
    expect(hurried.message).not.toHaveProperty('thinking');
  });

  test('options: stop, num_predict, seed', async () => {
    const count = ask('Count from 1 to 20.');
    const stopped = await ollama.chat({ model: 'foundation', messages: count, options: { stop: ['7'] } });
    expect(stopped).toMatchObject({ done_reason: 'stop', message: { content: '1, 2, 3, 4, 5, 6, ' } });
    const cut = await ollama.chat({ model: 'foundation', messages: count, options: { num_predict: 5 } });
    expect(cut).toMatchObject({ done_reason: 'length', eval_count: 5 });
    const unbounded = await ollama.chat({ model: 'foundation', messages: count, options: { num_predict: -1 } });
    expect(unbounded.message.content).toContain('19, 20');
    const draw = async (seed: number) => {
      const options = { seed, temperature: 2, top_p: 1, top_k: 0, min_p: 0, num_predict: 30 };
      const story = ask('Tell me a story about Ada.');
      return (await ollama.chat({ model: 'foundation', messages: story, options })).message.content;
    };
    const [one, again, other] = [await draw(1), await draw(1), await draw(2)];
    expect(again).toBe(one);
    expect(other).not.toBe(one);
  });

  test('abort ends the stream, and the service goes on', async () => {
    // Raw text that the built-in model repeats without end.
    const endless = {
      model: 'foundation',
      prompt: 'The capital of France is',
      raw: true,
      options: { num_predict: -2 },
    };
    const stream = await ollama.generate({ ...endless, stream: true });
    const reading = (async () => {
      for await (const _ of stream) ollama.abort();
    })();
    await expect(reading).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
    const health = async () => (await (await fetch(`${server.url}/health`)).json()) as { inflight: object };
    await until(async () => Object.keys((await health()).inflight).length === 0);
    expect((await ollama.chat({ model: 'foundation', messages: ask('Hello') })).message.content).toContain('Hello');
  });
});

describe('generate with the official client', () => {
  test('whole, with a system message', async () => {
    const answer = await ollama.generate({ model: 'foundation', system: 'You are Emma.', prompt: 'Who are you?' });
    expect(answer).toMatchObject({ response: 'I am Emma.', done_reason: 'stop' });
    expectMetrics(answer);
  });

  test('streamed', async () => {
    const stream = await ollama.generate({ model: 'foundation', prompt: 'Count from 1 to 20.', stream: true });
    const lines = await collect(stream);
    expect(lines.map((one) => one.response).join('')).toContain('18, 19, 20');
    expectMetrics(lines.at(-1)!);
  });

  test('raw text is continued with no template around it', async () => {
    const options = { num_predict: 8 };
    const raw = await ollama.generate({ model: 'foundation', prompt: '1, 2, 3, 4, 5,', raw: true, options });
    expect(raw.response).toBe(' 6, 7, 8');
    expectMetrics(raw);
  });

  test('a request without a prompt loads the model, or lets go of it', async () => {
    const load = await ollama.generate({ model: 'foundation', prompt: '', keep_alive: '5m' });
    expect(load).toMatchObject({ response: '', done: true, done_reason: 'load' });
    expect((await ollama.ps()).models.map((model) => model.name)).toEqual(['foundation']);
    const unload = await ollama.chat({ model: 'foundation', messages: [], keep_alive: 0 });
    expect(unload).toMatchObject({ done: true, done_reason: 'unload' });
    expect((await ollama.ps()).models).toEqual([]);
  });
});

describe('models with the official client', () => {
  const digestOf = async (path: string | URL) =>
    `sha256:${createHash('sha256')
      .update(await readFile(path))
      .digest('hex')}`;

  test('list: real sizes; real digests, at once or once they are known', async () => {
    const { models } = await ollama.list();
    const builtIn = new URL('../../models/foundation/foundation.gguf', import.meta.url);
    expect(models.map((model) => model.name)).toEqual(['foundation', 'broken', 'large']);
    expect(models[0]).toMatchObject({
      model: 'foundation',
      size: (await readFile(builtIn)).length,
      digest: await digestOf(builtIn),
      details: {
        format: 'gguf',
        family: 'qwen3',
        families: ['qwen3'],
        parameter_size: '4.66M',
        quantization_level: 'Q8_0',
      },
    });
    expect(models[1]).toMatchObject({ size: 22, details: { format: 'gguf', family: '' } });
    expect(models[2]).toMatchObject({
      size: LARGE_BYTES,
      digest: 'sha256:pending',
      details: { family: 'llama', parameter_size: '1.50M', quantization_level: 'Q4_K_M' },
    });
    expect(models.every((model) => !Number.isNaN(Date.parse(String(model.modified_at))))).toBe(true);
    const known = await until(async () => {
      const large = (await ollama.list()).models[2];
      return large?.digest === 'sha256:pending' ? undefined : large?.digest;
    });
    expect(known).toBe(await digestOf(join(modelsDir, 'large.gguf')));
  });

  test('show: by model or by name, with or without the default tag', async () => {
    const shown = await ollama.show({ model: 'foundation' });
    expect(shown).toMatchObject({
      capabilities: ['completion'],
      license: 'mit',
      details: { family: 'qwen3', parameter_size: '4.66M', quantization_level: 'Q8_0' },
      model_info: {
        'general.architecture': 'qwen3',
        'general.parameter_count': 4_657_152,
        'qwen3.context_length': 4096,
        'qwen3.embedding_length': 256,
      },
    });
    expect(shown.template).toContain('<|im_start|>');
    for (const body of [{ name: 'foundation' }, { model: 'foundation:latest' }]) {
      const response = await fetch(`${server.url}/api/show`, { method: 'POST', body: JSON.stringify(body) });
      expect(await response.json()).toEqual(shown);
    }
  });

  test('show: says that models use tools where the owner wants it said', async () => {
    const set = (value: string) =>
      runCli(['settings', 'set', 'ollama.announceTools', value], { SVC_HOME: server.home });
    await set('true');
    expect((await ollama.show({ model: 'foundation' })).capabilities).toEqual(['completion', 'tools']);
    await set('false');
    expect((await ollama.show({ model: 'foundation' })).capabilities).toEqual(['completion']);
  });

  test('ps: what is loaded', async () => {
    await ollama.chat({ model: 'foundation:latest', messages: ask('Hello') });
    const { models } = await ollama.ps();
    expect(models).toMatchObject([
      {
        name: 'foundation',
        model: 'foundation',
        context_length: 4096,
        digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      },
    ]);
  });

  test('version: one that its clients accept', async () => {
    const { version } = await ollama.version();
    // The least that VS Code's Copilot Chat takes; it compares number by number.
    const [major, minor, patch] = version.split('.').map(Number);
    expect(major! * 1e6 + minor! * 1e3 + patch!).toBeGreaterThanOrEqual(6004);
  });
});

describe('errors arrive with their status, as a string', () => {
  const fails = (attempt: Promise<unknown>) =>
    attempt.then(
      () => expect.unreachable(),
      (error: unknown) => error,
    );

  test.each<[string, number, RegExp, () => Promise<unknown>]>([
    ['an unknown model', 404, /nope/, () => ollama.chat({ model: 'nope', messages: ask('Hello') })],
    ['an unknown model, in a stream', 404, /nope/, () => ollama.generate({ model: 'nope', prompt: 'x', stream: true })],
    ['an unknown model to show', 404, /nope/, () => ollama.show({ model: 'nope' })],
    ["a provider's model to show", 404, /openai/, () => ollama.show({ model: 'openai/gpt-5' })],
    ['a damaged model to show', 500, /damaged/, () => ollama.show({ model: 'broken' })],
    [
      'a bad option',
      400,
      /options\.top_p/,
      () => ollama.generate({ model: 'foundation', prompt: 'x', options: { top_p: 7 } }),
    ],
    ['a suffix', 400, /suffix/, () => ollama.generate({ model: 'foundation', prompt: 'x', suffix: 'y' })],
    [
      'a picture',
      400,
      /image/,
      () => ollama.chat({ model: 'foundation', messages: [{ role: 'user', content: 'x', images: ['AAAA'] }] }),
    ],
    [
      'too long a prompt, even in a stream',
      400,
      /\d{4}.*4096/,
      () => ollama.chat({ model: 'foundation', messages: ask('word '.repeat(5000)), stream: true }),
    ],
  ])('%s', async (_, status, message, attempt) => {
    expect(await fails(attempt())).toMatchObject({ status_code: status, error: expect.stringMatching(message) });
  });

  test('in mid-stream: a last line that holds the error', async () => {
    const stream = await ollama.generate({
      model: 'foundation',
      prompt: 'The capital of France is',
      raw: true,
      options: { num_predict: -2 },
      stream: true,
    });
    const children = await readFile(`/proc/${server.process.pid}/task/${server.process.pid}/children`, 'utf8');
    const runner = Number(children.trim().split(' ').at(-1));
    const reading = (async () => {
      let lines = 0;
      for await (const _ of stream) {
        if (lines === 0) process.kill(runner, 'SIGKILL');
        lines += 1;
      }
    })();
    expect(await fails(reading)).toMatchObject({ message: expect.stringContaining('stopped unexpectedly') });
    expect((await ollama.chat({ model: 'foundation', messages: ask('Hello') })).done).toBe(true);
  });
});

describe('on the wire', () => {
  const post = (path: string, body: object) =>
    fetch(`${server.url}${path}`, { method: 'POST', body: JSON.stringify({ model: 'foundation', ...body }) });

  test('a stream is the default; each line is by the published schema', async () => {
    const chat = await post('/api/chat', { messages: ask('Hello') });
    expect(chat.headers.get('content-type')).toBe('application/x-ndjson');
    const generate = await post('/api/generate', { prompt: 'Hello' });
    for (const [response, event, whole] of [
      [chat, 'ChatStreamEvent', 'ChatResponse'],
      [generate, 'GenerateStreamEvent', 'GenerateResponse'],
    ] as const) {
      const lines = parseLines(await response.text());
      for (const one of lines.slice(0, -1)) expect(ollamaFaults(event, one)).toEqual([]);
      expect(ollamaFaults(whole, lines.at(-1))).toEqual([]);
    }
  });

  test.each<[string, string, () => Promise<Response>]>([
    ['chat', 'ChatResponse', () => post('/api/chat', { messages: ask('Hello'), stream: false })],
    ['generate', 'GenerateResponse', () => post('/api/generate', { prompt: 'Hello', stream: false })],
    ['a load', 'GenerateResponse', () => post('/api/generate', {})],
    ['tags', 'ListResponse', () => fetch(`${server.url}/api/tags`)],
    ['tags under the other prefix', 'ListResponse', () => fetch(`${server.url}/v1/tags`)],
    ['show', 'ShowResponse', () => post('/api/show', {})],
    ['ps', 'PsResponse', () => fetch(`${server.url}/api/ps`)],
    ['version', 'VersionResponse', () => fetch(`${server.url}/api/version`)],
    ['an error of ours', 'ErrorResponse', () => post('/api/chat', { model: 7 })],
    ['a body that is no JSON', 'ErrorResponse', () => fetch(`${server.url}/api/chat`, { method: 'POST', body: '{' })],
    ['a wrong method', 'ErrorResponse', () => fetch(`${server.url}/api/chat`)],
  ])('%s is by the published schema', async (_, schema, send) => {
    expect(ollamaFaults(schema, await (await send()).json())).toEqual([]);
  });

  test("HEAD, with which Ollama's command line asks whether anybody is there", async () => {
    for (const path of ['/', '/api/version', '/api/tags']) {
      const response = await fetch(`${server.url}${path}`, { method: 'HEAD' });
      expect(response.status).toBe(200);
      expect(await response.text()).toBe('');
    }
  });

  test('what has no effect is named in a header', async () => {
    const response = await post('/api/generate', { prompt: 'Hello', context: [1, 2], options: { num_ctx: 2048 } });
    expect(response.headers.get('x-postern-ignored')).toBe('context');
    await response.text();
  });
});
