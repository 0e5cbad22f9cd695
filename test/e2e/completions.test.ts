/** Text completions with the official OpenAI client against a started server and the built-in model. */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;
let openai: OpenAI;

beforeAll(async () => {
  server = await startServer();
  openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 });
});
afterAll(() => server?.stop());

/** Text that the built-in model goes on with by counting. */
const counting = { model: 'foundation', prompt: '1, 2, 3, 4, 5,' };

describe('completions with the official client', () => {
  test('continues the text, with every field that the client parses', async () => {
    const answer = await openai.completions.create({ ...counting, max_tokens: 8 });
    expect(answer).toMatchObject({
      id: expect.stringMatching(/^cmpl-/),
      object: 'text_completion',
      model: 'foundation',
      choices: [{ text: ' 6, 7, 8', index: 0, logprobs: null, finish_reason: 'length' }],
      usage: { completion_tokens: 8 },
    });
    const usage = answer.usage!;
    expect(usage.prompt_tokens).toBeGreaterThan(5);
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens);
  });

  test('streams the same, with usage when asked', async () => {
    const request = { ...counting, max_tokens: 8, stream: true } as const;
    const chunks: OpenAI.Completion[] = [];
    for await (const chunk of await openai.completions.create({ ...request, stream_options: { include_usage: true } }))
      chunks.push(chunk);
    const choices = chunks.flatMap((chunk) => chunk.choices);
    expect(choices.map((choice) => choice.text).join('')).toBe(' 6, 7, 8');
    expect(choices.at(-1)?.finish_reason).toBe('length');
    expect(chunks.length).toBeGreaterThan(4);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 8 } });
    for await (const chunk of await openai.completions.create(request)) expect(chunk).not.toHaveProperty('usage');
  });

  test('stop, echo, the default length, one prompt in a list', async () => {
    const stopped = await openai.completions.create({ ...counting, stop: ' 8' });
    expect(stopped.choices[0]).toMatchObject({ text: ' 6, 7,', finish_reason: 'stop' });
    const echoed = await openai.completions.create({
      ...counting,
      prompt: [counting.prompt],
      echo: true,
      max_tokens: 2,
    });
    expect(echoed.choices[0]?.text).toBe('1, 2, 3, 4, 5, 6');
    const short = await openai.completions.create({ ...counting, prompt: 'The capital of France is' });
    expect(short).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 16 } });
  });

  test('a seed repeats what was drawn', async () => {
    const draw = async (seed: number) => {
      const sampling = { temperature: 2, top_p: 1, ...{ top_k: 0, min_p: 0 }, max_tokens: 30, seed };
      return (await openai.completions.create({ ...counting, ...sampling })).choices[0]?.text;
    };
    const [one, again, other] = [await draw(1), await draw(1), await draw(2)];
    expect(again).toBe(one);
    expect(other).not.toBe(one);
  });

  test('errors arrive typed, with status, type and the field at fault', async () => {
    const create = (body: object) =>
      openai.completions.create({ ...counting, ...body }).then(
        () => expect.unreachable(),
        (error: unknown) => error,
      );
    const type = 'invalid_request_error';
    const suffix = await create({ suffix: ' the end' });
    expect(suffix).toBeInstanceOf(OpenAI.BadRequestError);
    expect(suffix).toMatchObject({ status: 400, type, code: 'unsupported', param: 'suffix' });
    expect(await create({ model: 'nope' })).toBeInstanceOf(OpenAI.NotFoundError);
    expect(await create({ prompt: [1, 2, 3] })).toMatchObject({ status: 400, type, param: 'prompt[0]' });
    expect(await create({ n: 2 })).toMatchObject({ status: 400, type, param: 'n' });
    const long = { prompt: 'word '.repeat(5000) };
    expect(await create(long)).toMatchObject({ status: 400, code: 'context_length_exceeded', param: 'prompt' });
    expect(await create({ ...long, stream: true })).toMatchObject({ status: 400, code: 'context_length_exceeded' });
  });
});

test('the path needs no prefix', async () => {
  for (const path of ['/completions', '/v1/completions', '/api/completions', '/v1/api/completions']) {
    const response = await fetch(`${server.url}${path}`, { method: 'POST', body: JSON.stringify(counting) });
    expect(await response.json()).toMatchObject({ object: 'text_completion' });
  }
});
