/** The official OpenAI client and the AI SDK against a started server and the built-in model. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, streamText } from 'ai';
import OpenAI from 'openai';
import type { RunnableToolFunctionWithParse } from 'openai/lib/RunnableFunction';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';
import { weatherTool as aiWeatherTool } from '../support/weather-tool.ts';

let server: TestServer;
let openai: OpenAI;

beforeAll(async () => {
  server = await startServer();
  openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 });
});
afterAll(() => server.stop());

const weatherTool = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'Get the weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
} satisfies OpenAI.ChatCompletionTool;

const ask = (content: string) => [{ role: 'user', content } as const];

describe('chat completions with the official client', () => {
  test('answers, with every field that the client parses', async () => {
    const answer = await openai.chat.completions.create({
      model: 'foundation',
      messages: ask('What is the capital of France?'),
    });
    expect(answer).toMatchObject({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      model: 'foundation',
      prefix_hash: expect.stringMatching(/^[0-9a-f]{32}$/),
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          logprobs: null,
          message: { role: 'assistant', content: 'The capital of France is Paris.', refusal: null },
        },
      ],
      usage: {
        prompt_tokens: expect.any(Number),
        completion_tokens: expect.any(Number),
        prompt_tokens_details: { cached_tokens: expect.any(Number) },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
    });
    const usage = answer.usage!;
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens);
    expect(usage.completion_tokens).toBeGreaterThan(3);
  });

  test('streams: role first, then content, then usage when asked', async () => {
    const stream = openai.chat.completions.stream({
      model: 'foundation',
      messages: ask('Count from 1 to 20.'),
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks[0]?.choices[0]?.delta).toEqual({ role: 'assistant', content: '' });
    expect(chunks.at(-2)?.choices[0]).toMatchObject({ delta: {}, finish_reason: 'stop' });
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } });
    const final = await stream.finalChatCompletion();
    expect(final.choices[0]?.message.content).toBe(
      '1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20',
    );
    expect(chunks.length).toBeGreaterThan(20);
  });

  test('without include_usage no chunk mentions usage', async () => {
    const stream = await openai.chat.completions.create({ model: 'foundation', messages: ask('Hello'), stream: true });
    for await (const chunk of stream) {
      expect(chunk).not.toHaveProperty('usage');
      expect(chunk.choices).toHaveLength(1);
    }
  });

  test('runTools: the model calls the tool, reads the result and answers', async () => {
    const cities: string[] = [];
    const getWeather: RunnableToolFunctionWithParse<{ city: string }> = {
      type: 'function',
      function: {
        ...weatherTool.function,
        parse: (text) => JSON.parse(text) as { city: string },
        function: ({ city }) => {
          cities.push(city);
          return 'sunny, 18 C';
        },
      },
    };
    const runner = openai.chat.completions.runTools({
      model: 'foundation',
      messages: ask('What is the weather in Paris?'),
      tools: [getWeather],
    });
    expect(await runner.finalContent()).toBe('The tool returned: sunny, 18 C');
    expect(cities).toEqual(['Paris']);
  });

  test('several calls in one turn stream with their own index; id and name come once', async () => {
    const stream = await openai.chat.completions.create({
      model: 'foundation',
      messages: ask("What is the weather in Paris and also run the command 'ls'."),
      tools: [
        weatherTool,
        {
          type: 'function',
          function: {
            name: 'shell_run',
            description: 'Run a command',
            parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
          },
        },
      ],
      stream: true,
    });
    const deltas: OpenAI.ChatCompletionChunk.Choice.Delta.ToolCall[] = [];
    let finish: string | null | undefined;
    for await (const chunk of stream) {
      deltas.push(...(chunk.choices[0]?.delta.tool_calls ?? []));
      finish = chunk.choices[0]?.finish_reason ?? finish;
    }
    expect(finish).toBe('tool_calls');
    expect(deltas.every((delta) => delta.index === 0 || delta.index === 1)).toBe(true);
    const named = deltas.filter((delta) => delta.id !== undefined);
    expect(named.map((delta) => [delta.index, delta.function?.name])).toEqual([
      [0, 'get_weather'],
      [1, 'shell_run'],
    ]);
    const argumentsOf = (index: number) =>
      JSON.parse(deltas.map((delta) => (delta.index === index ? (delta.function?.arguments ?? '') : '')).join(''));
    expect(argumentsOf(0)).toEqual({ city: 'Paris' });
    expect(argumentsOf(1)).toEqual({ command: 'ls' });
  });

  test('parallel_tool_calls: false allows one call', async () => {
    const answer = await openai.chat.completions.create({
      model: 'foundation',
      messages: ask("What is the weather in Paris and also run the command 'ls'."),
      tools: [weatherTool],
      parallel_tool_calls: false,
    });
    expect(answer.choices[0]?.message.tool_calls).toHaveLength(1);
  });

  test('tool_choice: none, required, named', async () => {
    const create = (tool_choice: OpenAI.ChatCompletionToolChoiceOption, content: string) =>
      openai.chat.completions.create({
        model: 'foundation',
        messages: ask(content),
        tools: [weatherTool],
        tool_choice,
      });
    const none = await create('none', 'What time is it?');
    expect(none.choices[0]?.message.tool_calls).toBeUndefined();
    expect(none.choices[0]?.message.content).toBe('I do not have a tool for that.');
    for (const choice of ['required', { type: 'function', function: { name: 'get_weather' } }] as const) {
      const { message, finish_reason } = (await create(choice, 'Hello')).choices[0]!;
      expect(finish_reason).toBe('tool_calls');
      expect(message.content).toBeNull();
      const call = message.tool_calls?.[0];
      expect(call?.type === 'function' && JSON.parse(call.function.arguments)).toHaveProperty('city');
    }
  });

  test('stop, max_completion_tokens and finish reasons', async () => {
    const stopped = await openai.chat.completions.create({
      model: 'foundation',
      messages: ask('Count from 1 to 20.'),
      stop: '7',
    });
    expect(stopped.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: '1, 2, 3, 4, 5, 6, ' } });
    const cut = await openai.chat.completions.create({
      model: 'foundation',
      messages: ask('Count from 1 to 20.'),
      max_completion_tokens: 5,
    });
    expect(cut.choices[0]?.finish_reason).toBe('length');
    expect(cut.usage?.completion_tokens).toBe(5);
  });

  test('a seed repeats a sampled answer', async () => {
    const create = async (seed: number) => {
      const answer = await openai.chat.completions.create({
        model: 'foundation',
        messages: ask('Tell me a story about Ada.'),
        // Without the engine's own pruning, so that there is something to draw from.
        ...{ temperature: 2, top_p: 1, top_k: 0, min_p: 0 },
        max_tokens: 40,
        seed,
      });
      return answer.choices[0]?.message.content;
    };
    const [one, again, other] = [await create(1), await create(1), await create(2)];
    expect(again).toBe(one);
    expect(other).not.toBe(one);
  });

  test('JSON mode and json_schema', async () => {
    const free = await openai.chat.completions.create({
      model: 'foundation',
      messages: ask('Give me JSON with name Ada and age 36.'),
      response_format: { type: 'json_object' },
    });
    expect(JSON.parse(free.choices[0]?.message.content ?? '')).toEqual({ name: 'Ada', age: 36 });
    const held = await openai.chat.completions.create({
      model: 'foundation',
      messages: ask('Hello'),
      max_tokens: 60,
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'answer',
          schema: {
            type: 'object',
            properties: { kind: { enum: ['greeting'] }, polite: { type: 'boolean' } },
            required: ['kind', 'polite'],
            additionalProperties: false,
          },
        },
      },
    });
    expect(JSON.parse(held.choices[0]?.message.content ?? '')).toEqual({
      kind: 'greeting',
      polite: expect.any(Boolean),
    });
  });

  test('developer is system; thoughts are reasoning_content and are counted', async () => {
    const named = await openai.chat.completions.create({
      model: 'foundation',
      messages: [{ role: 'developer', content: 'You are Emma.' }, ...ask('Who are you?')],
    });
    expect(named.choices[0]?.message.content).toBe('I am Emma.');
    const thoughtful = await openai.chat.completions.create({
      model: 'foundation',
      messages: ask('Think step by step: what is 3+4?'),
    });
    expect(thoughtful.choices[0]?.message).toHaveProperty('reasoning_content', expect.stringContaining('3'));
    expect(thoughtful.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(5);
    const hurried = await openai.chat.completions.create({
      model: 'foundation',
      messages: ask('Think step by step: what is 3+4?'),
      reasoning_effort: 'none',
    });
    expect(hurried.choices[0]?.message).not.toHaveProperty('reasoning_content');
  });

  test('the second turn of a conversation evaluates only what is new', async () => {
    const first = ask('My name is Alice.');
    const one = await openai.chat.completions.create({ model: 'foundation', messages: first });
    const two = await openai.chat.completions.create({
      model: 'foundation',
      messages: [
        ...first,
        { role: 'assistant', content: one.choices[0]?.message.content ?? '' },
        ...ask('What is my name?'),
      ],
    });
    expect(two.choices[0]?.message.content).toContain('Alice');
    expect(two.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThanOrEqual(one.usage!.prompt_tokens);
  });

  test('errors arrive typed, with status, type and the field at fault', async () => {
    const create = (body: object) =>
      openai.chat.completions.create({ model: 'foundation', messages: ask('Hello'), ...body }).then(
        () => expect.unreachable(),
        (error: unknown) => error,
      );
    expect(await create({ model: 'nope' })).toBeInstanceOf(OpenAI.NotFoundError);
    expect(await create({ model: 'nope' })).toMatchObject({
      status: 404,
      type: 'invalid_request_error',
      param: 'model',
    });
    expect(await create({ n: 2 })).toMatchObject({ status: 400, param: 'n' });
    expect(await create({ logprobs: true })).toMatchObject({ status: 400, param: 'logprobs' });
    const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    const refused = await create({ messages: [{ role: 'user', content: [picture] }] });
    expect(refused).toMatchObject({ status: 400, message: expect.stringContaining('image') });
    const long = await create({ messages: ask('word '.repeat(5000)) });
    expect(long).toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
      message: expect.stringMatching(/\d{4}.*4096/),
    });
    expect(await create({ messages: ask('word '.repeat(5000)), stream: true })).toMatchObject({ status: 400 });
  });

  test('models can be listed and retrieved', async () => {
    const { data } = await openai.models.list();
    expect(data.map((model) => model.id)).toEqual(['foundation']);
    expect(await openai.models.retrieve('foundation')).toMatchObject({ id: 'foundation', object: 'model' });
    await expect(openai.models.retrieve('org/nope')).rejects.toMatchObject({ status: 404 });
  });
});

describe('the AI SDK with its OpenAI-compatible provider', () => {
  const provider = () =>
    createOpenAICompatible({
      name: 'postern',
      baseURL: `${server.url}/v1`,
      includeUsage: true,
      supportsStructuredOutputs: true,
    });

  test('streams text and usage', async () => {
    const { textStream, usage } = streamText({ model: provider()('foundation'), prompt: 'Count from 1 to 20.' });
    let text = '';
    for await (const piece of textStream) text += piece;
    expect(text).toContain('18, 19, 20');
    expect((await usage).outputTokens).toBeGreaterThan(10);
  });

  test('runs a tool loop', async () => {
    const { text, steps } = await generateText({
      model: provider()('foundation'),
      prompt: 'What is the weather in Paris?',
      stopWhen: isStepCount(3),
      tools: {
        get_weather: aiWeatherTool,
      },
    });
    expect(steps).toHaveLength(2);
    expect(text).toBe('The tool returned: sunny, 18 C');
  });
});
