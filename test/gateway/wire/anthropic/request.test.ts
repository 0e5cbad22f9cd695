import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chatHistory } from '../../../../core/inference/local/chat-history.ts';
import { modelOptionsOf } from '../../../../core/inference/model-port.ts';
import { atOnce } from '../../../../core/steps.ts';
import { RequestError } from '../../../../gateway/errors.ts';
import { parseCountTokensRequest, parseMessagesRequest } from '../../../../gateway/wire/anthropic/request.ts';
import { ignoredHeaders } from '../../../../gateway/wire/ignored.ts';
import { runs } from '../../../support/sampling.ts';

const golden = new URL('../golden/anthropic/requests/', import.meta.url);
const user = { role: 'user', content: 'Hello' };
const base = { model: 'm', max_tokens: 100, messages: [user] };
const parse = (fields: object) => atOnce(parseMessagesRequest({ ...base, ...fields }));
const promptOf = (fields: object) => parse(fields).call.prompt;

test.each(readdirSync(golden))('golden: %s', (name) => {
  const { request, parsed } = JSON.parse(readFileSync(new URL(name, golden), 'utf8')) as Record<string, object>;
  const result = atOnce(parseMessagesRequest(request));
  // Through JSON, so that what is undefined is absent, as in the file.
  expect(JSON.parse(JSON.stringify({ ...result, ignored: [...result.ignored] }))).toEqual(parsed);
});

test('what is counted is what would be generated from', () => {
  for (const name of readdirSync(golden)) {
    const { request } = JSON.parse(readFileSync(new URL(name, golden), 'utf8')) as { request: object };
    const { call, ignored } = atOnce(parseMessagesRequest(request));
    const { max_tokens: _, ...counted } = { max_tokens: 0, ...request };
    const { prompt, tools, toolChoice, responseFormat, reasoning, providerOptions } = call;
    expect(atOnce(parseCountTokensRequest(counted))).toEqual({
      model: expect.any(String),
      ignored,
      call: { prompt, tools, toolChoice, responseFormat, reasoning, providerOptions },
    });
  }
});

describe('the system prompt', () => {
  test('is a string, blocks, or a message anywhere', () => {
    const expected = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    ];
    expect(promptOf({ system: 'Be brief.' })).toEqual(expected);
    expect(promptOf({ system: [{ type: 'text', text: 'Be brief.' }] })).toEqual(expected);
    expect(promptOf({ messages: [{ role: 'system', content: 'Be brief.' }, user] })).toEqual(expected);
    expect(promptOf({ messages: [user, { role: 'system', content: 'Be brief.' }] })).toEqual(expected.toReversed());
    for (const nothing of ['', [], [{ type: 'text', text: '' }], null]) {
      expect(promptOf({ system: nothing })).toEqual(expected.slice(1));
    }
  });

  test('loses a block that is meant for a server, and nothing else', () => {
    const block = (text: string) => ({ type: 'text', text });
    const header = block('x-anthropic-billing-header: cc_version=2.1.0; cch=00000;');
    const { call, ignored } = parse({ system: [header, block('Be brief.')] });
    expect(call.prompt[0]).toEqual({ role: 'system', content: 'Be brief.' });
    expect([...ignored]).toEqual(['system.x-anthropic']);
    expect(promptOf({ system: [header] })[0]).toMatchObject({ role: 'user' });
    expect(promptOf({ messages: [{ role: 'system', content: [header] }, user] })).toHaveLength(1);
    expect(promptOf({ system: [block('About x-anthropic-headers.')] })[0]).toMatchObject({ role: 'system' });
    expect(promptOf({ messages: [{ role: 'user', content: [header] }] })[0]).toMatchObject({ content: [header] });
  });
});

describe('tools and thinking', () => {
  const weather = { name: 'get_weather', input_schema: { type: 'object' } };

  test.each<[object, unknown, boolean | undefined]>([
    [{ tool_choice: { type: 'auto' } }, { type: 'auto' }, undefined],
    [{ tool_choice: { type: 'any' } }, { type: 'required' }, undefined],
    [{ tool_choice: { type: 'any', disable_parallel_tool_use: true } }, { type: 'required' }, false],
    [{ tool_choice: { type: 'auto', disable_parallel_tool_use: false } }, { type: 'auto' }, true],
    [{ tool_choice: { type: 'tool', name: 'get_weather' } }, { type: 'tool', toolName: 'get_weather' }, undefined],
    [{ tool_choice: { type: 'none' } }, { type: 'none' }, undefined],
    [{}, { type: 'auto' }, undefined],
  ])('%j', (fields, toolChoice, parallel) => {
    const { call } = parse({ tools: [weather], ...fields });
    expect(call.toolChoice).toEqual(toolChoice);
    expect(modelOptionsOf(call).parallelToolCalls).toBe(parallel);
  });

  test('with hosted tools alone there is nothing to choose from', () => {
    const { call, ignored } = parse({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] });
    expect(call).not.toHaveProperty('tools');
    expect(ignoredHeaders(ignored)).toEqual({ 'x-postern-ignored': 'tools.web_search' });
  });

  test.each<[object, object, boolean]>([
    [{}, {}, true],
    [{ thinking: { type: 'disabled' } }, { reasoning: 'none' }, true],
    [{ thinking: { type: 'adaptive' } }, {}, true],
    [{ thinking: { type: 'adaptive', display: 'omitted' } }, {}, false],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'low' } }, { reasoning: 'low' }, true],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'max' } }, { reasoning: 'max' }, true],
    [{ thinking: { type: 'disabled' }, output_config: { effort: 'low' } }, { reasoning: 'none' }, true],
    [
      { thinking: { type: 'enabled', budget_tokens: 1024, display: 'summarized' } },
      { thinkingBudgetTokens: 1024 },
      true,
    ],
  ])('%j', (fields, expected, showThinking) => {
    const request = parse(fields);
    const { thinkingBudgetTokens } = modelOptionsOf(request.call);
    expect({ reasoning: request.call.reasoning, thinkingBudgetTokens }).toEqual(expected);
    expect(request.showThinking).toBe(showThinking);
  });
});

test('a conversation with two calls reads to the engine as it does in any other style', () => {
  const call = (id: string, name: string) => ({ type: 'tool_use', id, name, input: { of: id } });
  const result = (id: string, content: string) => ({ type: 'tool_result', tool_use_id: id, content });
  const messages = [
    user,
    { role: 'assistant', content: [call('a', 'one'), call('b', 'two')] },
    { role: 'user', content: [result('b', '2'), result('a', '1')] },
  ];
  expect(chatHistory(promptOf({ messages }))).toEqual([
    { type: 'user', text: 'Hello' },
    {
      type: 'model',
      response: [
        { type: 'functionCall', name: 'one', params: { of: 'a' }, result: '1', startsNewChunk: true },
        { type: 'functionCall', name: 'two', params: { of: 'b' }, result: '2', startsNewChunk: false },
      ],
    },
  ]);
});

describe('what is refused, and which field is named', () => {
  const content = (...blocks: object[]) => ({ messages: [{ role: 'user', content: blocks }] });
  const said = (...blocks: object[]) => ({ messages: [user, { role: 'assistant', content: blocks }] });
  test.each<[string, object]>([
    ['model', { model: '' }],
    ['model', { model: null }],
    ['max_tokens', { max_tokens: undefined }],
    ['max_tokens', { max_tokens: 0 }],
    ['max_tokens', { max_tokens: 1.5 }],
    ['messages', { messages: [] }],
    ['messages', { messages: 'Hello' }],
    ['messages[0].role', { messages: [{ role: 'tool', content: 'x' }] }],
    ['messages[0].content', { messages: [{ role: 'user', content: 7 }] }],
    ['messages[0].content', { messages: [{ role: 'user' }] }],
    ['messages[0].content[0].text', content({ type: 'text', text: 7 })],
    ['messages[0].content[0].type', content({ text: 'x' })],
    ['messages[0].content[0].type', content({ type: 'tool_use', id: 'a', name: 'b', input: {} })],
    ['messages[0].content[0].type', content({ type: 'thinking', thinking: 'x' })],
    ['messages[0].content[0].source.type', content({ type: 'image', source: { type: 'file', file_id: 'f' } })],
    ['messages[0].content[0].source.url', content({ type: 'image', source: { type: 'url', url: 'nowhere' } })],
    ['messages[0].content[0].source.media_type', content({ type: 'image', source: { type: 'base64', data: '' } })],
    ['messages[0].content[0].source.type', content({ type: 'document', source: { type: 'file', file_id: 'f' } })],
    ['messages[0].content[1].tool_use_id', content({ type: 'x' }, { type: 'tool_result', tool_use_id: 'a' })],
    ['messages[0].content[0].tool_use_id', content({ type: 'tool_result', content: 'x' })],
    ['messages[0].content[0].content', content({ type: 'tool_result', tool_use_id: 'a', content: 7 })],
    ['messages[1].content[0].type', said({ type: 'tool_result', tool_use_id: 'a' })],
    ['messages[1].content[0].input', said({ type: 'tool_use', id: 'a', name: 'b', input: 'x' })],
    ['messages[1].content[0].id', said({ type: 'tool_use', id: '', name: 'b', input: {} })],
    ['system', { system: 7 }],
    ['system[0].text', { system: [{ type: 'text' }] }],
    ['system[0].type', { system: [{ type: 'image', source: {} }] }],
    ['temperature', { temperature: 1.1 }],
    ['temperature', { temperature: '1' }],
    ['top_p', { top_p: 1.1 }],
    ['top_k', { top_k: -1 }],
    ['stop_sequences', { stop_sequences: 'END' }],
    ['stop_sequences[0]', { stop_sequences: [7] }],
    ['stop_sequences', { stop_sequences: Array.from({ length: 17 }, String) }],
    ['stream', { stream: 'yes' }],
    ['thinking.type', { thinking: { type: 'between_tools' } }],
    ['thinking.budget_tokens', { thinking: { type: 'enabled' } }],
    ['tools[0].input_schema', { tools: [{ name: 'x' }] }],
    ['tools[0].name', { tools: [{ name: 'a b', input_schema: {} }] }],
    ['tools[0].name', { tools: [{ type: 'custom', name: '', input_schema: {} }] }],
    ['tool_choice.type', { tool_choice: { type: 'required' } }],
    ['tool_choice.name', { tool_choice: { type: 'tool' } }],
    ['tool_choice', { tool_choice: 'auto' }],
    ['thread', { thread: { type: 'create' } }],
    ['output_config.effort', { output_config: { effort: 'enormous' } }],
    ['output_config.format.type', { output_config: { format: { type: 'xml' } } }],
    ['output_config.format.schema', { output_config: { format: { type: 'json_schema' } } }],
  ])('%s in %j', (param, fields) => {
    const refusal = (): unknown => parse(fields);
    expect(refusal).toThrow(RequestError);
    expect(refusal).toThrow(expect.objectContaining({ code: 'bad_request', param }));
  });

  test.each([null, 7, 'text', true, []])('a body that is %j, not an object', (body) => {
    expect(() => atOnce(parseMessagesRequest(body))).toThrow(RequestError);
    expect(() => atOnce(parseCountTokensRequest(body))).toThrow(RequestError);
  });
});

test('null means "not said"', () => {
  const optional = ['system', 'temperature', 'top_p', 'top_k', 'stop_sequences', 'stream', 'tools', 'tool_choice'];
  const nulls = [...optional, 'thinking', 'output_config', 'mcp_servers', 'container', 'context_management'];
  expect(parse(Object.fromEntries(nulls.map((name) => [name, null])))).toEqual(parse({}));
});

test('names of what is ignored are fit for a header, whatever a client calls them', () => {
  const types = ['web_search_20250305', 'web_search_20260209', 'a\r\nset-cookie: x', 'é'.repeat(100), ''];
  const tools = [...types, ...Array.from({ length: 100 }, (_, index) => `t${index}`)].map((type) => ({ type }));
  const header = ignoredHeaders(parse({ tools }).ignored)['x-postern-ignored'] ?? '';
  expect(header).toMatch(/^tools\.web_search, tools\.a__set-cookie__x, [\w., -]+$/);
  expect(header.split(', ').length).toBe(32);
  expect(header.split(', ').every((name) => name.length <= 64)).toBe(true);
  expect(ignoredHeaders([])).toEqual({});
});

test('anything at all is either parsed or refused with a field: never another error', () => {
  const fields = ['model', 'max_tokens', 'messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config'];
  const block = fc.record(
    {
      type: fc.constantFrom('text', 'image', 'document', 'thinking', 'tool_use', 'tool_result', 'x', '__proto__'),
      text: fc.jsonValue({ maxDepth: 1 }),
      thinking: fc.string(),
      id: fc.constantFrom('a', 'b'),
      tool_use_id: fc.constantFrom('a', 'b', 'c'),
      name: fc.string(),
      input: fc.jsonValue({ maxDepth: 1 }),
      source: fc.jsonValue({ maxDepth: 2 }),
      content: fc.oneof(fc.string(), fc.jsonValue({ maxDepth: 2 })),
    },
    { requiredKeys: ['type'] },
  );
  const message = fc.record({
    role: fc.constantFrom('user', 'assistant', 'system', 'tool'),
    content: fc.oneof(fc.string(), fc.array(block, { maxLength: 3 })),
  });
  const value = fc.oneof(fc.jsonValue(), fc.array(message, { maxLength: 4 }), fc.array(block, { maxLength: 3 }));
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...fields), value), (candidate) => {
      for (const body of [candidate, { ...base, ...candidate }]) {
        try {
          atOnce(parseMessagesRequest(body));
        } catch (error) {
          expect(error).toBeInstanceOf(RequestError);
        }
      }
    }),
    runs(20_000),
  );
});
