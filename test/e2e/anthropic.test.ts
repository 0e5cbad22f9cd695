/** Anthropic's own client and the AI SDK against a started server and the built-in model. */
import { execFileSync } from 'node:child_process';
import { createAnthropic } from '@ai-sdk/anthropic';
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema';
import { generateText, jsonSchema, Output, isStepCount, streamText } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';
import { weatherTool } from '../support/weather-tool.ts';
import { until } from '../support/wait.ts';

let server: TestServer;
let anthropic: Anthropic;

beforeAll(async () => {
  server = await startServer();
  anthropic = new Anthropic({ baseURL: server.url, apiKey: 'any', maxRetries: 0 });
});
afterAll(() => server.stop());

const weather = {
  name: 'get_weather',
  description: 'Get the weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
} satisfies Anthropic.Tool;
const shell = {
  name: 'shell_run',
  description: 'Run a command',
  input_schema: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
} satisfies Anthropic.Tool;

type Fields = Partial<Anthropic.MessageCreateParamsNonStreaming>;

function asking(content: Anthropic.MessageParam['content'], fields: Fields = {}) {
  return { model: 'foundation', max_tokens: 500, messages: [{ role: 'user' as const, content }], ...fields };
}
const ask = (content: string, fields: Fields = {}) => anthropic.messages.create(asking(content, fields));
const textOf = ({ content }: Anthropic.Message) =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('');
const callsOf = ({ content }: Anthropic.Message) => content.filter((block) => block.type === 'tool_use');
const promptTokens = ({ usage }: Anthropic.Message) =>
  usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0);
const refusalOf = (request: PromiseLike<unknown>) =>
  request.then(
    () => expect.unreachable(),
    (error: unknown) => error,
  );

describe("messages with Anthropic's client", () => {
  test('answers, with every field that the client knows', async () => {
    const message = await ask('What is the capital of France?');
    expect(message).toEqual({
      id: expect.stringMatching(/^msg_[0-9a-f]{24}$/),
      type: 'message',
      role: 'assistant',
      model: 'foundation',
      content: [{ type: 'text', text: 'The capital of France is Paris.' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      container: null,
      diagnostics: null,
      usage: {
        input_tokens: expect.any(Number),
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: expect.any(Number),
        cache_creation: null,
        output_tokens: expect.any(Number),
        output_tokens_details: { thinking_tokens: 0 },
        server_tool_use: null,
        service_tier: null,
        inference_geo: null,
        speed: null,
      },
    });
    expect(message.usage.output_tokens).toBeGreaterThan(3);
  });

  test('streams what it answers, with the same usage', async () => {
    const stream = anthropic.messages.stream(asking('Count from 1 to 20.'));
    const types: string[] = [];
    let text = '';
    let announced = 0;
    stream.on('text', (piece) => (text += piece));
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === 'message_start') announced = event.message.usage.input_tokens;
    }
    const message = await stream.finalMessage();
    const whole = await ask('Count from 1 to 20.');
    expect(message.content).toMatchObject(whole.content);
    expect(text).toBe(textOf(whole));
    expect(text).toContain('18, 19, 20');
    expect(message.stop_reason).toBe('end_turn');
    expect(promptTokens(message)).toBe(promptTokens(whole));
    expect(announced).toBe(promptTokens(whole));
    expect(message.usage.output_tokens).toBe(whole.usage.output_tokens);
    expect(types.slice(0, 2)).toEqual(['message_start', 'content_block_start']);
    expect(types.slice(-3)).toEqual(['content_block_stop', 'message_delta', 'message_stop']);
    expect(types.filter((type) => type === 'content_block_delta').length).toBeGreaterThan(20);
  });

  test('counts the tokens that a message then has', async () => {
    const { max_tokens: _, ...question } = asking('What is the weather in Paris?', { tools: [weather] });
    const { input_tokens: counted } = await anthropic.messages.countTokens(question);
    expect(counted).toBeGreaterThan(50);
    expect(promptTokens(await ask('What is the weather in Paris?', { tools: [weather] }))).toBe(counted);
    const { input_tokens: fewer } = await anthropic.messages.countTokens(asking('What is the weather in Paris?'));
    expect(fewer).toBeLessThan(counted);
  });

  test('calls a tool, reads the result and answers', async () => {
    const question = asking('What is the weather in Paris?', { tools: [weather] });
    const first = await anthropic.messages.create(question);
    expect(first.stop_reason).toBe('tool_use');
    const [call] = callsOf(first);
    expect(call).toMatchObject({ name: 'get_weather', input: { city: 'Paris' }, caller: { type: 'direct' } });
    expect(call?.id).toMatch(/^toolu_[0-9a-f]{24}$/);
    const answerTo = async (result: Omit<Anthropic.ToolResultBlockParam, 'type' | 'tool_use_id'>) => {
      const block = { type: 'tool_result' as const, tool_use_id: call!.id, ...result };
      const messages: Anthropic.MessageParam[] = [
        ...question.messages,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [block] },
      ];
      return textOf(await anthropic.messages.create({ ...question, messages }));
    };
    expect(await answerTo({ content: 'sunny, 18 C' })).toBe('The tool returned: sunny, 18 C');
    const blocks = [
      { type: 'text' as const, text: 'sunny, ' },
      { type: 'text' as const, text: '18 C' },
    ];
    expect(await answerTo({ content: blocks })).toBe('The tool returned: sunny, 18 C');
    expect(await answerTo({ content: '{"ok": false, "error": "no network"}', is_error: true })).toMatch(
      /^The tool failed/,
    );
  });

  test('makes several calls in one turn, or one at a time where that is asked for', async () => {
    const both = "What is the weather in Paris and also run the command 'ls'.";
    const message = await anthropic.messages.stream(asking(both, { tools: [weather, shell] })).finalMessage();
    expect(message.stop_reason).toBe('tool_use');
    expect(callsOf(message)).toMatchObject([
      { name: 'get_weather', input: { city: 'Paris' } },
      { name: 'shell_run', input: { command: 'ls' } },
    ]);
    const choice = { type: 'auto', disable_parallel_tool_use: true } as const;
    expect(callsOf(await ask(both, { tools: [weather, shell], tool_choice: choice }))).toHaveLength(1);
  });

  test('tool_choice: none, any, tool', async () => {
    const none = await ask('What time is it?', { tools: [weather], tool_choice: { type: 'none' } });
    expect(textOf(none)).toBe('I do not have a tool for that.');
    for (const choice of [{ type: 'any' }, { type: 'tool', name: 'get_weather' }] as const) {
      const message = await ask('Hello', { tools: [weather], tool_choice: choice });
      expect(message.stop_reason).toBe('tool_use');
      expect(callsOf(message)).toMatchObject([{ name: 'get_weather', input: { city: expect.any(String) } }]);
    }
    const unknown = { type: 'tool', name: 'nope' } as const;
    expect(await refusalOf(ask('Hello', { tools: [weather], tool_choice: unknown }))).toBeInstanceOf(
      Anthropic.BadRequestError,
    );
  });

  test.each([false, true])(
    'the tool runner of its beta brings a conversation to its end (stream: %s)',
    async (stream) => {
      const cities: string[] = [];
      const runnable = betaTool({
        name: 'get_weather',
        description: 'Get the weather',
        inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        run: ({ city }) => {
          cities.push(city);
          return 'sunny, 18 C';
        },
      });
      const params = { model: 'foundation', max_tokens: 500, tools: [runnable] };
      const messages = asking('What is the weather in Paris?').messages;
      const runner = anthropic.beta.messages.toolRunner({ ...params, messages, stream });
      const last = await runner.runUntilDone();
      expect(last.content).toMatchObject([{ type: 'text', text: 'The tool returned: sunny, 18 C' }]);
      expect(cities).toEqual(['Paris']);
    },
  );

  test('stop sequences, max_tokens, and an answer begun by the client', async () => {
    const stopped = await ask('Count from 1 to 20.', { stop_sequences: ['17', '7'] });
    expect(stopped).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: '7' });
    expect(textOf(stopped)).toBe('1, 2, 3, 4, 5, 6, ');
    const cut = await ask('Count from 1 to 20.', { max_tokens: 5 });
    expect(cut).toMatchObject({ stop_reason: 'max_tokens', stop_sequence: null, usage: { output_tokens: 5 } });
    const begun = await anthropic.messages.create({
      ...asking('Count from 1 to 20.'),
      messages: [...asking('Count from 1 to 20.').messages, { role: 'assistant', content: '1, 2, 3, 4, 5,' }],
    });
    expect(textOf(begun)).toMatch(/^ 6, 7, 8/);
  });

  test('thoughts are blocks with a signature, shown or not, and can come back', async () => {
    const question = 'Think step by step: what is 3+4?';
    const thinking = { type: 'enabled', budget_tokens: 1024 } as const;
    const message = await anthropic.messages.stream(asking(question, { max_tokens: 2000, thinking })).finalMessage();
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: expect.stringContaining('3'), signature: expect.stringMatching(/./) },
      { type: 'text' },
    ]);
    expect(message.usage.output_tokens_details?.thinking_tokens).toBeGreaterThan(5);
    const next = await anthropic.messages.create({
      ...asking(''),
      messages: [
        { role: 'user', content: question },
        { role: 'assistant', content: message.content },
        { role: 'user', content: 'What is the capital of France?' },
      ],
    });
    expect(textOf(next)).toBe('The capital of France is Paris.');
    const hidden = await ask(question, { thinking: { type: 'adaptive', display: 'omitted' } });
    expect(hidden.content).toMatchObject([{ type: 'thinking', thinking: '' }, { type: 'text' }]);
    const hurried = await ask(question, { thinking: { type: 'disabled' } });
    expect(hurried.content.map((block) => block.type)).toEqual(['text']);
  });

  test('an answer in the form of a schema', async () => {
    const format = jsonSchemaOutputFormat({
      type: 'object',
      properties: { kind: { type: 'string', enum: ['greeting'] }, polite: { type: 'boolean' } },
      required: ['kind', 'polite'],
      additionalProperties: false,
    });
    const { parsed_output: output } = await anthropic.messages.parse(
      asking('Hello', { max_tokens: 60, output_config: { format } }) as Fields &
        ReturnType<typeof asking> & {
          output_config: { format: typeof format };
        },
    );
    expect(output).toEqual({ kind: 'greeting', polite: expect.any(Boolean) });
  });

  test('the system prompt stands in blocks or among the messages', async () => {
    const block = { type: 'text', text: 'You are Emma.', cache_control: { type: 'ephemeral' } } as const;
    expect(textOf(await ask('Who are you?', { system: [block] }))).toBe('I am Emma.');
    const messages = [{ role: 'system', content: 'You are Emma.' } as const, ...asking('Who are you?').messages];
    expect(textOf(await anthropic.messages.create({ ...asking(''), messages }))).toBe('I am Emma.');
  });

  test('a header for servers in the system prompt does not keep requests from sharing their prefix', async () => {
    const request = (cch: string) => {
      const header = { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.0; cch=${cch};` } as const;
      return ask('Who are you?', { system: [header, { type: 'text', text: 'You are Emma.' }] });
    };
    await request('1b3f5');
    const again = await request('9c0d2');
    expect(textOf(again)).toBe('I am Emma.');
    expect(again.usage.cache_read_input_tokens).toBeGreaterThanOrEqual(promptTokens(again) - 1);
  });

  test('what cannot be used here is left out and named', async () => {
    const hosted = { type: 'web_search_20250305', name: 'web_search' } as const;
    const bash = { type: 'bash_20250124', name: 'bash' } as const;
    const request = asking('What is the weather in Paris?', { tools: [hosted, weather, bash] });
    const { data, response } = await anthropic.messages.create(request).withResponse();
    expect(callsOf(data)).toMatchObject([{ name: 'get_weather' }]);
    expect(response.headers.get('x-postern-ignored')).toBe('tools.web_search, tools.bash');
    const stream = anthropic.messages.stream(request);
    expect((await stream.withResponse()).response.headers.get('x-postern-ignored')).toBe(
      'tools.web_search, tools.bash',
    );
    expect(callsOf(await stream.finalMessage())).toHaveLength(1);
    const counted = await anthropic.messages.countTokens(request).withResponse();
    expect(counted.response.headers.get('x-postern-ignored')).toBe('tools.web_search, tools.bash');
    const plain = await anthropic.messages.create(asking('Hello')).withResponse();
    expect(plain.response.headers.has('x-postern-ignored')).toBe(false);
  });

  test('errors arrive typed, with status and message', async () => {
    expect(await refusalOf(ask('Hello', { model: 'nope' }))).toBeInstanceOf(Anthropic.NotFoundError);
    expect(await refusalOf(ask('Hello', { model: 'nope' }))).toMatchObject({ status: 404, type: 'not_found_error' });
    expect(await refusalOf(anthropic.messages.create({ ...asking('Hello'), ...{ temperature: 1.5 } }))).toMatchObject({
      status: 400,
      type: 'invalid_request_error',
      message: expect.stringContaining('temperature'),
    });
    const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } } as const;
    expect(await refusalOf(anthropic.messages.create(asking([picture])))).toMatchObject({
      status: 400,
      message: expect.stringContaining('image'),
    });
    const long = 'word '.repeat(5000);
    const tooLong = {
      status: 400,
      type: 'invalid_request_error',
      message: expect.stringMatching(/prompt is too long: \d+ tokens > \d+ maximum\. /),
    };
    expect(await refusalOf(ask(long))).toMatchObject(tooLong);
    expect(await refusalOf(anthropic.messages.stream(asking(long)).finalMessage())).toMatchObject(tooLong);
    expect(await refusalOf(anthropic.messages.countTokens({ model: 'nope', messages: [] }))).toMatchObject({
      status: 400,
    });
    expect(await refusalOf(ask('x'.repeat(33 * 1024 * 1024)))).toMatchObject({
      status: 413,
      type: 'request_too_large',
    });
  });

  test('a failure in mid-stream is an error of the stream, and the next request succeeds', async () => {
    const failure = await until(async () => {
      try {
        for await (const event of anthropic.messages.stream(asking('Tell me a story about Ada.'))) {
          if (event.type === 'content_block_start') killRunner();
        }
        // It was all said before the runner died.
        return false;
      } catch (error) {
        return error;
      }
    });
    expect(failure).toBeInstanceOf(Anthropic.APIError);
    expect(failure).toMatchObject({ type: 'api_error', message: expect.stringContaining('stopped unexpectedly') });
    expect(textOf(await ask('What is the capital of France?'))).toContain('Paris');
  });

  test('a client that leaves ends the generation', async () => {
    const stream = anthropic.messages.stream(asking('Tell me a story about Ada.'));
    stream.on('text', () => stream.abort());
    expect(await refusalOf(stream.finalMessage())).toBeInstanceOf(Anthropic.APIUserAbortError);
    await until(async () => {
      const { inflight } = (await (await fetch(`${server.url}/health`)).json()) as { inflight: object };
      return Object.keys(inflight).length === 0;
    });
  });

  test('answers without its version header, under every alias, and to nothing but POST', async () => {
    const body = JSON.stringify(asking('What is the capital of France?'));
    for (const path of ['/messages', '/v1/messages?beta=true', '/api/messages']) {
      const answer = await fetch(server.url + path, { method: 'POST', body });
      expect(await answer.json()).toMatchObject({ type: 'message', role: 'assistant' });
    }
    expect((await fetch(`${server.url}/anthropic/v1/messages`, { method: 'POST', body })).status).toBe(404);
    const refused = await fetch(`${server.url}/v1/messages`);
    expect(refused.status).toBe(405);
    expect(await refused.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
  });
});

/** The only child of the server is the process in which the model runs. */
function killRunner(): void {
  const pid = execFileSync('pgrep', ['-P', String(server.process.pid)], { encoding: 'utf8' });
  process.kill(Number(pid), 'SIGKILL');
}

describe('the AI SDK with its Anthropic provider', () => {
  // It warns where it has to guess how long an answer may be.
  const maxOutputTokens = 1000;
  const model = () => createAnthropic({ baseURL: `${server.url}/v1`, apiKey: 'any' })('foundation');
  const tools = {
    get_weather: weatherTool,
  };

  test('generates text, with usage', async () => {
    const { text, usage, finishReason } = await generateText({
      model: model(),
      maxOutputTokens,
      instructions: 'You are Emma.',
      prompt: 'Who are you?',
    });
    expect(text).toBe('I am Emma.');
    expect(finishReason).toBe('stop');
    expect(usage.inputTokens).toBeGreaterThan(10);
    expect(usage.outputTokens).toBeGreaterThan(3);
  });

  test('streams text, with usage', async () => {
    const { textStream, usage } = streamText({ model: model(), maxOutputTokens, prompt: 'Count from 1 to 20.' });
    let text = '';
    for await (const piece of textStream) text += piece;
    expect(text).toContain('18, 19, 20');
    expect((await usage).inputTokens).toBeGreaterThan(10);
    expect((await usage).outputTokens).toBeGreaterThan(10);
  });

  test('runs a tool loop, whole and streamed', async () => {
    const request = { maxOutputTokens, prompt: 'What is the weather in Paris?', stopWhen: isStepCount(3), tools };
    const { text, steps } = await generateText({ model: model(), ...request });
    expect(steps).toHaveLength(2);
    expect(text).toBe('The tool returned: sunny, 18 C');
    const streamed = streamText({ model: model(), ...request });
    await streamed.consumeStream();
    expect(await streamed.text).toBe('The tool returned: sunny, 18 C');
    expect(await streamed.steps).toHaveLength(2);
    expect((await streamed.totalUsage).inputTokens).toBeGreaterThan(100);
  });

  test('reads thoughts, and gives them back in the next step', async () => {
    const { reasoningText, steps } = await generateText({
      model: model(),
      maxOutputTokens,
      prompt: 'Think step by step: what is 3+4?',
      providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
    });
    expect(reasoningText).toContain('3');
    const { text, warnings } = await generateText({
      model: model(),
      maxOutputTokens,
      messages: [
        { role: 'user', content: 'Think step by step: what is 3+4?' },
        ...(steps.at(-1)?.response.messages ?? []),
        { role: 'user', content: 'What is the capital of France?' },
      ],
    });
    expect(text).toBe('The capital of France is Paris.');
    expect(warnings).toEqual([]);
  });

  test('makes an object', async () => {
    const schema = jsonSchema<{ name: string; age: number }>({
      type: 'object',
      properties: { name: { type: 'string' }, age: { type: 'integer' } },
      required: ['name', 'age'],
      additionalProperties: false,
    });
    const { output } = await generateText({
      model: model(),
      maxOutputTokens,
      prompt: 'Give me JSON with name Ada and age 36.',
      output: Output.object({ schema }),
    });
    expect(output).toEqual({ name: expect.any(String), age: expect.any(Number) });
  });
});
