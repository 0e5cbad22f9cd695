/** What a local model is held to, as each wire style asks for it: schemas, tools, both at once, and no thinking. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.stop());

interface Posted<Body> {
  readonly status: number;
  readonly body: Body;
}

async function post<Body>(path: string, body: object): Promise<Posted<Body>> {
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'foundation', ...body }),
  });
  return { status: response.status, body: (await response.json()) as Body };
}

interface ChatCall {
  readonly function: { readonly name: string; readonly arguments: string };
}

interface ChatBody {
  readonly choices: readonly [
    {
      readonly finish_reason: string;
      readonly message: { readonly content: string | null; readonly tool_calls?: readonly ChatCall[] };
    },
  ];
  readonly error: { readonly message: string };
}

interface ResponsesBody {
  readonly output: readonly {
    readonly type: string;
    readonly name: string;
    readonly arguments: string;
    readonly content: readonly { readonly text: string }[];
  }[];
}

interface MessagesBody {
  readonly content: readonly {
    readonly type: string;
    readonly text: string;
    readonly name: string;
    readonly input: unknown;
  }[];
}

interface OllamaBody {
  readonly message: {
    readonly content: string;
    readonly tool_calls?: readonly { readonly function: { readonly name: string; readonly arguments: unknown } }[];
  };
}

const PERSON = {
  type: 'object',
  properties: { name: { type: 'string', maxLength: 20 }, age: { type: 'integer', minimum: 0, maximum: 130 } },
  required: ['name', 'age'],
  additionalProperties: false,
};
const CITY = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const TOOL = { name: 'get_weather', description: 'Get the weather' };

interface Answer {
  readonly text: string | undefined;
  readonly calls: readonly unknown[];
}

/** One request with both, in each style, and what of its answer counts. */
const STYLES: Readonly<Record<string, (question: string) => Promise<Answer>>> = {
  async 'chat completions'(content) {
    const { body } = await post<ChatBody>('/v1/chat/completions', {
      messages: [{ role: 'user', content }],
      tools: [{ type: 'function', function: { ...TOOL, parameters: CITY } }],
      response_format: { type: 'json_schema', json_schema: { name: 'person', strict: true, schema: PERSON } },
    });
    const { message } = body.choices[0];
    return {
      text: message.content ?? undefined,
      calls: (message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
    };
  },
  async responses(input) {
    const { body } = await post<ResponsesBody>('/v1/responses', {
      input,
      temperature: 0,
      tools: [{ type: 'function', ...TOOL, parameters: CITY }],
      text: { format: { type: 'json_schema', name: 'person', strict: true, schema: PERSON } },
    });
    return {
      text: body.output.find((item) => item.type === 'message')?.content[0]?.text,
      calls: body.output
        .filter((item) => item.type === 'function_call')
        .map((item) => [item.name, JSON.parse(item.arguments)]),
    };
  },
  async messages(content) {
    const { body } = await post<MessagesBody>('/v1/messages', {
      max_tokens: 300,
      temperature: 0,
      messages: [{ role: 'user', content }],
      tools: [{ ...TOOL, input_schema: CITY }],
      output_config: { format: { type: 'json_schema', schema: PERSON } },
    });
    return {
      text: body.content.find((block) => block.type === 'text')?.text,
      calls: body.content.filter((block) => block.type === 'tool_use').map((block) => [block.name, block.input]),
    };
  },
  async ollama(content) {
    const { body } = await post<OllamaBody>('/api/chat', {
      stream: false,
      messages: [{ role: 'user', content }],
      tools: [{ type: 'function', function: { ...TOOL, parameters: CITY } }],
      format: PERSON,
    });
    return {
      text: body.message.content === '' ? undefined : body.message.content,
      calls: (body.message.tool_calls ?? []).map((call) => [call.function.name, call.function.arguments]),
    };
  },
};

describe.each(Object.entries(STYLES))('tools with a response format: %s', (_name, ask) => {
  test('a question for a tool is a call', async () => {
    expect(await ask('What is the weather in Paris?')).toEqual({
      text: undefined,
      calls: [['get_weather', { city: 'Paris' }]],
    });
  });

  test('any other is an answer that fits', async () => {
    const { text, calls } = await ask('Give me JSON with name Ada and age 36.');
    expect(calls).toEqual([]);
    expect(JSON.parse(text ?? '')).toEqual({ name: 'Ada', age: 36 });
  });
});

const CHAT = '/v1/chat/completions';
const weather = { type: 'function', function: { ...TOOL, parameters: CITY } };
const format = (schema: object, strict = true) => ({
  response_format: { type: 'json_schema', json_schema: { name: 'held', strict, schema } },
});
const ask = (content: string) => ({ messages: [{ role: 'user', content }] });

describe('a response format', () => {
  test('holds at any temperature, and comes to an end', async () => {
    const schema = {
      type: 'object',
      properties: {
        id: { type: 'string', pattern: '^[A-Z]{3}-[0-9]{4}$' },
        due: { type: 'string', format: 'date' },
        share: { type: 'number', minimum: 0, maximum: 1 },
        size: { type: 'integer', multipleOf: 5, minimum: 5, maximum: 50 },
        tags: { type: 'array', items: { enum: ['a', 1, null] }, minItems: 1, maxItems: 3 },
        note: { anyOf: [{ type: 'null' }, { type: 'string', maxLength: 10 }] },
      },
      required: ['id', 'due', 'share', 'size', 'tags', 'note'],
      additionalProperties: false,
    };
    for (const seed of [1, 2, 3]) {
      const { body } = await post<ChatBody>(CHAT, {
        ...ask('Tell me anything.'),
        ...format(schema),
        ...{ temperature: 2, top_p: 1, top_k: 0, min_p: 0, seed, max_tokens: 800 },
      });
      expect(body.choices[0].finish_reason).toBe('stop');
      const answer = JSON.parse(body.choices[0].message.content ?? '');
      expect(answer).toEqual({
        id: expect.stringMatching(/^[A-Z]{3}-\d{4}$/),
        due: expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/),
        share: expect.toSatisfy((share: number) => share >= 0 && share <= 1),
        size: expect.toSatisfy((size: number) => size % 5 === 0 && size >= 5 && size <= 50),
        tags: expect.toSatisfy(
          (tags: unknown[]) => tags.length > 0 && tags.every((tag) => ['a', 1, null].includes(tag as string)),
        ),
        note: expect.toSatisfy((note: string | null) => note === null || Array.from(note).length <= 10),
      });
    }
  });

  test('that cannot be kept is refused where its client is strict', async () => {
    const schema = { type: 'object', properties: { tags: { type: 'array', uniqueItems: true } } };
    const refused = await post<ChatBody>(CHAT, { ...ask('Hello'), ...format(schema) });
    expect(refused).toMatchObject({ status: 400, body: { error: { param: 'response_format' } } });
    expect(refused.body.error.message).toContain('"properties.tags.uniqueItems"');
    expect(await post<ChatBody>(CHAT, { ...ask('Hello'), ...format(schema, false), max_tokens: 20 })).toMatchObject({
      status: 200,
    });
  });

  test.each([false, true])(
    'that cannot be kept is named where its client is not strict (stream: %s)',
    async (stream) => {
      const schema = { type: 'object', properties: { tags: { type: 'array', uniqueItems: true, maxItems: 2 } } };
      const asked: readonly (readonly [string, object])[] = [
        [CHAT, { ...ask('Hello'), ...format(schema, false) }],
        ['/v1/responses', { input: 'Hello', text: { format: { type: 'json_schema', name: 'held', schema } } }],
        [
          '/v1/messages',
          { ...ask('Hello'), max_tokens: 40, output_config: { format: { type: 'json_schema', schema } } },
        ],
        ['/api/chat', { ...ask('Hello'), format: schema, options: { num_predict: 40, num_gpu: 1 } }],
      ];
      for (const [path, body] of asked) {
        const response = await fetch(`${server.url}${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'foundation', max_tokens: 40, max_output_tokens: 40, ...body, stream }),
        });
        await response.text();
        expect([path, response.status]).toEqual([path, 200]);
        const named = response.headers.get('x-postern-ignored')?.split(', ');
        expect([path, named]).toEqual([path, expect.arrayContaining(['response_format.properties.tags.uniqueItems'])]);
      }
    },
  );

  test('that nothing fits is refused', async () => {
    const nothing = { allOf: [{ type: 'string' }, { type: 'object' }] };
    expect(await post<ChatBody>(CHAT, { ...ask('Hello'), ...format(nothing, false) })).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining('No value fits') } },
    });
  });
});

test('a named tool is called once', async () => {
  const { body } = await post<ChatBody>(CHAT, {
    ...ask("What is the weather in Paris and also run the command 'ls'."),
    tools: [weather],
    tool_choice: { type: 'function', function: { name: 'get_weather' } },
  });
  expect(body.choices[0].message.tool_calls).toHaveLength(1);
});

describe('a call that reaches the limit of tokens', () => {
  const cut = { max_tokens: 8, tool_choice: 'required' };

  test('is in a whole answer of chat completions as in its stream', async () => {
    const asked = { ...ask('What is the weather in Paris?'), tools: [weather], ...cut };
    const { body } = await post<ChatBody>(CHAT, asked);
    expect(body.choices[0].finish_reason).toBe('length');
    const [call] = body.choices[0].message.tool_calls ?? [];
    const stream = await fetch(`${server.url}${CHAT}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'foundation', ...asked, stream: true }),
    }).then((response) => response.text());
    const deltas = stream
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .flatMap((line) => JSON.parse(line.slice(6)).choices[0]?.delta.tool_calls ?? []) as readonly ChatCall[];
    const streamed = deltas.map((delta) => delta.function.arguments).join('');
    expect(streamed).not.toBe('');
    expect(call?.function).toEqual({ name: 'get_weather', arguments: streamed });
  });

  test('is incomplete in a response', async () => {
    const { body } = await post('/v1/responses', {
      ...{ input: 'What is the weather in Paris?', temperature: 0, max_output_tokens: 8, tool_choice: 'required' },
      tools: [{ type: 'function', ...TOOL, parameters: CITY }],
    });
    expect(body).toMatchObject({ status: 'incomplete', output: [{ type: 'function_call', status: 'incomplete' }] });
  });

  test('is a block without input in a message', async () => {
    const { body } = await post('/v1/messages', {
      ...{ max_tokens: 8, temperature: 0, tool_choice: { type: 'any' } },
      messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
      tools: [{ ...TOOL, input_schema: CITY }],
    });
    expect(body).toMatchObject({
      stop_reason: 'max_tokens',
      content: [{ type: 'tool_use', name: 'get_weather', input: {} }],
    });
  });
});

test('without thinking the built-in model answers as ever', async () => {
  const answers = [
    post<ChatBody>(CHAT, { ...ask('What is the capital of France?'), reasoning_effort: 'none' }),
    post<ChatBody>(CHAT, { ...ask('What is the capital of France?'), enable_thinking: false }),
  ];
  for (const { body } of await Promise.all(answers)) {
    expect(body.choices[0].message.content).toBe('The capital of France is Paris.');
  }
  const ollama = await post<OllamaBody>('/api/chat', {
    ...ask('What is the capital of France?'),
    stream: false,
    think: false,
  });
  expect(ollama.body.message.content).toBe('The capital of France is Paris.');
});
