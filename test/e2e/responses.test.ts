/** Open Responses: the official OpenAI client against a started server. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectValidItem, expectValidResponse, validEvents } from '../support/openresponses.ts';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;
let openai: OpenAI;

beforeAll(async () => {
  server = await startServer();
  openai = clientOf(server);
});
afterAll(() => server.stop());

function clientOf({ url }: TestServer): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 });
}

const model = 'foundation';

const functionTool = (name: string, description: string, parameter: string): OpenAI.Responses.FunctionTool => ({
  type: 'function',
  name,
  description,
  strict: false,
  parameters: { type: 'object', properties: { [parameter]: { type: 'string' } }, required: [parameter] },
});
const weatherTool = functionTool('get_weather', 'Get the weather', 'city');
const shellTool = functionTool('shell_run', 'Run a command', 'command');

/** The answer in full, as it came over the wire. */
async function post(body: object): Promise<{ status: number; headers: Headers; text: string }> {
  const reply = await fetch(`${server.url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, ...body }),
  });
  return { status: reply.status, headers: reply.headers, text: await reply.text() };
}

describe('the OpenAI client', () => {
  test('creates a response that is complete and valid', async () => {
    const answer = await openai.responses.create({ model, input: 'What is the capital of France?' });
    expect(answer.output_text).toBe('The capital of France is Paris.');
    expect(answer).toMatchObject({
      id: expect.stringMatching(/^resp_[0-9a-f]{24}$/),
      status: 'completed',
      model,
      output: [{ type: 'message', id: expect.stringMatching(/^msg_/), role: 'assistant', status: 'completed' }],
      usage: {
        input_tokens_details: { cached_tokens: expect.any(Number) },
        output_tokens_details: { reasoning_tokens: 0 },
      },
    });
    const usage = answer.usage!;
    expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens);
    expect(usage.output_tokens).toBeGreaterThan(3);
    expectValidResponse(answer);
  });

  test('streams valid events, from which it puts the same response together', async () => {
    const stream = openai.responses.stream({ model, input: 'Count from 1 to 20.' });
    const types: string[] = [];
    let text = '';
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === 'response.output_text.delta') text += event.delta;
    }
    const final = await stream.finalResponse();
    expect(final.output_text).toBe('1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20');
    expect(text).toBe(final.output_text);
    expect(types.filter((type) => type === 'response.output_text.delta').length).toBeGreaterThan(20);
    expect([...types.slice(0, 4), ...types.slice(-4)]).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(final.usage?.output_tokens).toBeGreaterThan(20);
    expect(await openai.responses.retrieve(final.id)).toMatchObject({ id: final.id, output_text: final.output_text });
  });

  test.each<[string, object]>([
    ['text', { input: 'Hello' }],
    ['thoughts', { input: 'Think step by step: what is 3+4?' }],
    ['a call', { input: 'What is the weather in Paris?', tools: [weatherTool] }],
    ['an answer cut short', { input: 'Count from 1 to 20.', max_output_tokens: 5 }],
  ])('%s: every event that comes over the wire is valid', async (_, body) => {
    const { headers, text } = await post({ ...body, stream: true });
    expect(headers.get('content-type')).toContain('text/event-stream');
    const events = validEvents(text);
    expectValidResponse(events.at(-1)?.response);
    expect(events.at(-1)?.response?.usage).not.toBeNull();
  });

  test('a tool loop by previous_response_id: the conversation is remembered', async () => {
    const first = await openai.responses.create({
      model,
      input: 'What is the weather in Paris?',
      tools: [weatherTool],
    });
    const [call] = first.output;
    if (call?.type !== 'function_call') return expect.unreachable();
    expect(first.output).toHaveLength(1);
    expect(JSON.parse(call.arguments)).toEqual({ city: 'Paris' });
    const second = await openai.responses.create({
      model,
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id: call.call_id, output: 'sunny, 18 C' }],
      tools: [weatherTool],
    });
    expect(second.output_text).toBe('The tool returned: sunny, 18 C');
    expect(second.previous_response_id).toBe(first.id);
  });

  test('a tool loop without the store: the client sends everything back', async () => {
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'What is the weather in Paris?' }];
    const body = { model, tools: [weatherTool], store: false };
    const first = await openai.responses.create({ ...body, input });
    input.push(...(first.output as OpenAI.Responses.ResponseInput));
    for (const item of first.output) {
      if (item.type === 'function_call')
        input.push({
          type: 'function_call_output',
          call_id: item.call_id,
          output: [{ type: 'input_text', text: 'sunny' }],
        });
    }
    expect((await openai.responses.create({ ...body, input })).output_text).toBe('The tool returned: sunny');
    await expect(openai.responses.retrieve(first.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  });

  test('several calls in one turn, streamed, each with its own arguments', async () => {
    const stream = openai.responses.stream({
      model,
      input: "What is the weather in Paris and also run the command 'ls'.",
      tools: [weatherTool, shellTool],
    });
    const pieces = new Map<number, string>();
    for await (const event of stream) {
      expect(event.type).not.toBe('response.output_text.delta');
      if (event.type === 'response.function_call_arguments.delta')
        pieces.set(event.output_index, (pieces.get(event.output_index) ?? '') + event.delta);
    }
    const { output } = await stream.finalResponse();
    const calls = output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
    expect(calls.map((call) => [call.name, JSON.parse(call.arguments)])).toEqual([
      ['get_weather', { city: 'Paris' }],
      ['shell_run', { command: 'ls' }],
    ]);
    expect(calls.map((call) => call.arguments)).toEqual([...pieces.values()]);
    expect(new Set(calls.map((call) => call.call_id)).size).toBe(2);
    const single = await openai.responses.create({
      model,
      input: "What is the weather in Paris and also run the command 'ls'.",
      tools: [weatherTool, shellTool],
      parallel_tool_calls: false,
    });
    expect(single.output).toHaveLength(1);
  });

  test('tool choice: none, required, named, allowed', async () => {
    const create = (tool_choice: OpenAI.Responses.ResponseCreateParams['tool_choice'], input: string) =>
      openai.responses.create({ model, input, tools: [weatherTool, shellTool], tool_choice: tool_choice! });
    expect((await create('none', 'What time is it?')).output_text).toBe('I do not have a tool for that.');
    expect((await create('required', 'Hello')).output).toMatchObject([{ type: 'function_call' }]);
    expect((await create({ type: 'function', name: 'get_weather' }, 'Hello')).output).toMatchObject([
      { type: 'function_call', name: 'get_weather' },
    ]);
    const allowed = {
      type: 'allowed_tools' as const,
      mode: 'required' as const,
      tools: [{ type: 'function', name: 'shell_run' }],
    };
    const answer = await create(allowed, 'Hello');
    expect(answer.output).toMatchObject([{ type: 'function_call', name: 'shell_run' }]);
    expectValidResponse(answer);
  });

  test('goes on from a response: what was said is known, instructions are not carried over', async () => {
    const one = await openai.responses.create({ model, input: 'My name is Alice.' });
    const two = await openai.responses.create({ model, previous_response_id: one.id, input: 'What is my name?' });
    expect(two.output_text).toBe('Your name is Alice.');
    const items: unknown[] = [];
    for await (const item of await openai.responses.inputItems.list(two.id, { order: 'asc', limit: 2 }))
      items.push(item);
    for (const item of items) expectValidItem(item);
    expect(items).toMatchObject([
      { role: 'user', content: [{ text: 'My name is Alice.' }] },
      { role: 'assistant' },
      { role: 'user', content: [{ text: 'What is my name?' }] },
    ]);
    const emma = await openai.responses.create({ model, instructions: 'You are Emma.', input: 'Hello' });
    const ask = { model, previous_response_id: emma.id, input: 'Who are you?' };
    const plain = await openai.responses.create(ask);
    expect(plain).toMatchObject({ instructions: null, output_text: expect.not.stringContaining('Emma') });
    const told = await openai.responses.create({ ...ask, instructions: 'You are Emma.' });
    expect(told).toMatchObject({ instructions: 'You are Emma.', output_text: 'I am Emma.' });
  });

  test('goes on from a response that was streamed, as soon as its last event is there', async () => {
    const stream = await openai.responses.create({ model, input: 'My name is Alice.', stream: true });
    for await (const event of stream) {
      if (event.type !== 'response.completed') continue;
      const next = await openai.responses.create({
        model,
        previous_response_id: event.response.id,
        input: 'What is my name?',
      });
      expect(next.output_text).toBe('Your name is Alice.');
    }
  });

  test('retrieves and deletes; what is gone cannot be gone on from', async () => {
    const answer = await openai.responses.create({ model, input: 'Hello', metadata: { trace: '7' } });
    const stored = await openai.responses.retrieve(answer.id);
    expect(stored).toEqual(answer);
    await openai.responses.delete(answer.id);
    await expect(openai.responses.retrieve(answer.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    await expect(openai.responses.delete(answer.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    await expect(openai.responses.inputItems.list(answer.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    await expect(openai.responses.create({ model, input: 'x', previous_response_id: answer.id })).rejects.toMatchObject(
      { status: 404, param: 'previous_response_id', type: 'invalid_request_error' },
    );
  });

  test('a response that was cut short says so', async () => {
    const answer = await openai.responses.create({ model, input: 'Count from 1 to 20.', max_output_tokens: 5 });
    expect(answer).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ status: 'incomplete' }],
      usage: { output_tokens: 5 },
    });
  });

  test('JSON: an object, and a schema', async () => {
    const free = await openai.responses.create({
      model,
      input: 'Give me JSON with name Ada and age 36.',
      text: { format: { type: 'json_object' } },
    });
    expect(JSON.parse(free.output_text)).toEqual({ name: 'Ada', age: 36 });
    const held = await openai.responses.create({
      model,
      input: 'Hello',
      max_output_tokens: 60,
      text: {
        format: {
          type: 'json_schema',
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
    expect(JSON.parse(held.output_text)).toEqual({ kind: 'greeting', polite: expect.any(Boolean) });
    expectValidResponse(held);
  });

  test('thoughts are an item of their own, are counted, and can be sent back', async () => {
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Think step by step: what is 3+4?' }];
    const answer = await openai.responses.create({ model, input });
    const [thoughts, message] = answer.output;
    expect(thoughts).toMatchObject({ type: 'reasoning', summary: [{ text: expect.stringContaining('3') }] });
    expect(message?.type).toBe('message');
    expect(answer.usage?.output_tokens_details.reasoning_tokens).toBeGreaterThan(5);
    const said = answer.output as OpenAI.Responses.ResponseInput;
    const next = [...input, ...said, { role: 'user' as const, content: 'What is the capital of France?' }];
    expect((await openai.responses.create({ model, input: next })).output_text).toContain('Paris');
    const hurried = await openai.responses.create({ model, input, reasoning: { effort: 'none' } });
    expect(hurried.output.map((item) => item.type)).toEqual(['message']);
  });

  test('errors arrive typed, with status, type and the field at fault', async () => {
    const create = (body: object) =>
      openai.responses.create({ model, input: 'Hello', ...body }).then(
        () => expect.unreachable(),
        (error: unknown) => error,
      );
    expect(await create({ model: 'nope' })).toBeInstanceOf(OpenAI.NotFoundError);
    expect(await create({ model: 'nope' })).toMatchObject({ type: 'invalid_request_error', param: 'model' });
    expect(await create({ background: true, store: false })).toBeInstanceOf(OpenAI.BadRequestError);
    expect(await create({ background: true, store: false })).toMatchObject({ param: 'background' });
    expect(await create({ temperature: 3 })).toMatchObject({ status: 400, param: 'temperature' });
    expect(await create({ previous_response_id: 'resp_nope' })).toMatchObject({
      status: 404,
      param: 'previous_response_id',
    });
    const picture = { role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,AAAA' }] };
    expect(await create({ input: [picture] })).toMatchObject({
      status: 400,
      param: 'input',
      message: expect.stringContaining('image'),
    });
    for (const stream of [false, true]) {
      expect(await create({ input: 'word '.repeat(5000), stream })).toMatchObject({
        status: 400,
        code: 'context_length_exceeded',
        param: 'input',
      });
    }
    const schema = { type: 'array', uniqueItems: true };
    const format = { type: 'json_schema', name: 'unkept', strict: true, schema };
    expect(await create({ text: { format } })).toMatchObject({ status: 400, param: 'text.format' });
  });

  test('tools that only OpenAI can run are left out and named in a header', async () => {
    const tools: OpenAI.Responses.Tool[] = [{ type: 'web_search' }, weatherTool, { type: 'local_shell' }];
    const { data, response } = await openai.responses
      .create({ model, input: 'What is the weather in Paris?', tools, text: { verbosity: 'low' } })
      .withResponse();
    expect(response.headers.get('x-postern-ignored')).toBe('tools.web_search, tools.local_shell, text.verbosity');
    expect(data.output).toMatchObject([{ type: 'function_call', name: 'get_weather' }]);
    expectValidResponse(data);
    expect((await post({ input: 'Hello', tools: [weatherTool] })).headers.has('x-postern-ignored')).toBe(false);
  });

  test('Codex: a namespaced tool is called by its own name and namespace, and its result is understood', async () => {
    const tools: OpenAI.Responses.Tool[] = [
      { type: 'namespace', name: 'mcp__weather', description: 'The weather.', tools: [weatherTool] },
    ];
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'What is the weather in Paris?' }];
    const stream = openai.responses.stream({ model, input, tools, store: false });
    const { output } = await stream.finalResponse();
    expect(output).toMatchObject([{ type: 'function_call', name: 'get_weather', namespace: 'mcp__weather' }]);
    const [call] = output;
    if (call?.type !== 'function_call') return expect.unreachable();
    const { parsed_arguments: _, ...item } = call;
    input.push(item, { type: 'function_call_output', call_id: call.call_id, output: 'sunny' });
    const answer = await openai.responses.create({ model, input, tools, store: false });
    expect(answer.output_text).toBe('The tool returned: sunny');
  });

  test('a client that leaves ends the work, and leaves nothing behind', async () => {
    const stream = await openai.responses.create({ model, input: 'Tell me a story about Ada.', stream: true });
    for await (const event of stream) {
      if (event.type !== 'response.output_text.delta') continue;
      stream.controller.abort();
      break;
    }
    // One call at a time: this one has an answer only when the other is over.
    expect((await openai.responses.create({ model, input: 'Hello' })).status).toBe('completed');
  });
});

test('a response survives kill -9 from the moment that its client has it', async () => {
  const home = await mkdtemp(join(tmpdir(), 'postern-responses-'));
  let running = await startServer({ home });
  try {
    const stream = clientOf(running).responses.stream({ model, input: 'My name is Alice.' });
    const { id, output_text } = await stream.finalResponse();
    const ended = once(running.process, 'exit');
    running.process.kill('SIGKILL');
    await ended;
    running = await startServer({ home });
    const client = clientOf(running);
    expect((await client.responses.retrieve(id)).output_text).toBe(output_text);
    const next = await client.responses.create({ model, previous_response_id: id, input: 'What is my name?' });
    expect(next.output_text).toBe('Your name is Alice.');
  } finally {
    await running.stop();
    await rm(home, { recursive: true, force: true });
  }
});
