/** Open Responses: how long a conversation is, and what becomes of one that is too long, by the official OpenAI client. */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectValidCompaction, expectValidResponse } from '../support/openresponses.ts';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;
let openai: OpenAI;

beforeAll(async () => {
  server = await startServer();
  openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 });
});
afterAll(() => server.stop());

const model = 'foundation';
const refused = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable(),
    (error: unknown) => error,
  );

describe('the tokens of a request', () => {
  test('are as many as its answer then says, with all that it goes on from', async () => {
    const first = await openai.responses.create({ model, input: 'My name is Alice.' });
    const body = { model, previous_response_id: first.id, input: 'What is my name?', instructions: 'Be brief.' };
    const count = await openai.responses.inputTokens.count(body);
    expect(count).toEqual({ object: 'response.input_tokens', input_tokens: expect.any(Number) });
    expect((await openai.responses.create(body)).usage?.input_tokens).toBe(count.input_tokens);
    const { input_tokens: alone } = await openai.responses.inputTokens.count({ model, input: 'What is my name?' });
    expect(alone).toBeLessThan(count.input_tokens);
    const tool = {
      type: 'function' as const,
      name: 'f',
      strict: false,
      parameters: { type: 'object', properties: {} },
    };
    const { input_tokens: withTool } = await openai.responses.inputTokens.count({ ...body, tools: [tool] });
    expect(withTool).toBeGreaterThan(count.input_tokens);
    const nothingNew = await openai.responses.inputTokens.count({ model, previous_response_id: first.id });
    expect(nothingNew.input_tokens).toBeLessThan(count.input_tokens);
  });

  test('are not counted for a model that there is not, nor for none', async () => {
    expect(await refused(openai.responses.inputTokens.count({ model: 'nope', input: 'Hello' }))).toMatchObject({
      status: 404,
    });
    expect(await refused(openai.responses.inputTokens.count({ input: 'Hello' }))).toMatchObject({
      status: 400,
      param: 'model',
    });
  });
});

describe('a conversation that is compacted', () => {
  test('keeps what the user said, and goes on from a summary of the rest', async () => {
    const compacted = await openai.responses.compact({
      model,
      prompt_cache_key: 'a key',
      input: [
        { role: 'user', content: 'We launch on Tuesday.' },
        { role: 'assistant', content: 'Understood.' },
        { role: 'user', content: 'Tell support first.' },
      ],
    });
    expectValidCompaction(compacted);
    expect(compacted).toMatchObject({
      object: 'response.compaction',
      output: [
        { type: 'message', role: 'user', content: [{ text: 'We launch on Tuesday.' }] },
        { type: 'message', role: 'user', content: [{ text: 'Tell support first.' }] },
        { type: 'compaction', encrypted_content: expect.any(String) },
      ],
    });
    const input = [...compacted.output, { role: 'user', content: 'Hello' }] as OpenAI.Responses.ResponseInput;
    const next = await openai.responses.create({ model, input });
    expectValidResponse(next);
    expect(next.status).toBe('completed');
    const kept = await openai.responses.inputItems.list(next.id, { order: 'asc' });
    expect(kept.data.map(({ type }) => type)).toEqual(['message', 'message', 'compaction', 'message']);
    const again = await openai.responses.compact({ model, previous_response_id: next.id });
    expect(again.output.map(({ type }) => type)).toEqual(['message', 'message', 'message', 'compaction']);
  });

  test('has to be one, of a model that there is', async () => {
    expect(await refused(openai.responses.compact({ model }))).toMatchObject({ status: 400, param: 'input' });
    const body = { input: 'Hello' } as OpenAI.Responses.ResponseCompactParams;
    expect(await refused(openai.responses.compact(body))).toMatchObject({ status: 400, param: 'model' });
    const foreign = [{ type: 'compaction' as const, encrypted_content: 'gAAAAABpM0Yj' }];
    expect(await refused(openai.responses.create({ model, input: foreign }))).toMatchObject({
      status: 400,
      param: 'input[0].encrypted_content',
    });
  });
});

describe('a conversation that is too long for the model', () => {
  const long = (word: string) => `${word} `.repeat(3000);
  const input: OpenAI.Responses.ResponseInput = [
    { role: 'developer', content: 'You are Emma.' },
    { role: 'user', content: long('one') },
    { role: 'assistant', content: 'Yes.' },
    { role: 'user', content: long('two') },
    { role: 'assistant', content: 'Yes.' },
    { role: 'user', content: long('three') },
    { role: 'assistant', content: 'Yes.' },
    { role: 'user', content: 'Who are you?' },
  ];

  test('is refused, and with "truncation": "auto" answered without its beginning, which is said', async () => {
    expect(await refused(openai.responses.create({ model, input }))).toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    });
    const { data, response } = await openai.responses.create({ model, input, truncation: 'auto' }).withResponse();
    expectValidResponse(data);
    expect(data).toMatchObject({ status: 'completed', truncation: 'auto', output_text: 'I am Emma.' });
    expect(response.headers.get('x-postern-ignored')).toMatch(/^truncation\.[1-6]_items$/);
    expect((await openai.responses.inputItems.list(data.id)).data).toHaveLength(input.length);
    const stream = await openai.responses.create({ model, input, truncation: 'auto', stream: true });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types.at(-1)).toBe('response.completed');
  });

  test('is refused where what is asked is too long by itself', async () => {
    const body = {
      model,
      input: [{ role: 'user' as const, content: long('word').repeat(4) }],
      truncation: 'auto' as const,
    };
    expect(await refused(openai.responses.create(body))).toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    });
  });

  test('one that fits is answered whole', async () => {
    const answer = openai.responses.create({ model, input: 'Hello', truncation: 'auto' });
    expect((await answer.withResponse()).response.headers.has('x-postern-ignored')).toBe(false);
    expect((await answer).truncation).toBe('auto');
  });
});

test('thoughts come a second time where the request includes them, and can be sent back as that alone', async () => {
  const question = { role: 'user' as const, content: 'Think step by step: what is 3+4?' };
  const include: OpenAI.Responses.ResponseIncludable[] = ['reasoning.encrypted_content', 'file_search_call.results'];
  const { data, response } = await openai.responses.create({ model, input: [question], include }).withResponse();
  expectValidResponse(data);
  expect(response.headers.get('x-postern-ignored')).toBe('include.file_search_call.results');
  const [thoughts] = data.output;
  if (thoughts?.type !== 'reasoning') return expect.unreachable();
  const plain = await openai.responses.create({ model, input: [question] });
  expect(plain.output[0]).not.toHaveProperty('encrypted_content');
  const opaque = {
    type: 'reasoning' as const,
    id: thoughts.id,
    summary: [],
    encrypted_content: thoughts.encrypted_content!,
  };
  const whole = { type: 'reasoning' as const, id: thoughts.id, summary: [], content: thoughts.content! };
  const count = async (item: OpenAI.Responses.ResponseReasoningItem) =>
    (await openai.responses.inputTokens.count({ model, input: [question, item, question] })).input_tokens;
  expect(await count(opaque)).toBe(await count(whole));
  expect(await count(opaque)).toBeGreaterThanOrEqual(await count({ ...whole, content: [] }));
});
