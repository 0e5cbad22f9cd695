import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RequestError } from '../../../../gateway/errors.ts';
import { parseKeptItems } from '../../../../gateway/wire/responses/input.ts';
import { itemId, responseIdOfItem, type Item } from '../../../../gateway/wire/responses/items.ts';
import { expectValidItem } from '../../../support/openresponses.ts';
import { KEY, parseRequest } from '../../../support/responses-golden.ts';
import { runs } from '../../../support/sampling.ts';

const golden = new URL('../golden/responses/requests/', import.meta.url);
const parse = (fields: object) => parseRequest({ model: 'm', input: 'Hello', ...fields });
const promptOf = (input: unknown) => parse({ input }).call.prompt;

describe('golden', () => {
  test.each(readdirSync(golden))('%s', (name) => {
    const file = JSON.parse(readFileSync(new URL(name, golden), 'utf8')) as {
      request: unknown;
      earlier?: unknown;
      others?: unknown;
      parsed: { input: readonly object[] };
    };
    const { tools: _, ...parsed } = parseRequest(file.request, file);
    // Through JSON, so that what is undefined is absent, as in the file.
    expect(JSON.parse(JSON.stringify(parsed))).toEqual(file.parsed);
    for (const item of parsed.input) expectValidItem(item);
    expect(parseKeptItems(JSON.parse(JSON.stringify(parsed.input)))).toEqual(parsed.input);
  });
});

describe('input', () => {
  const said = [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }];

  test.each<[string, unknown]>([
    ['a string', 'Hello'],
    ['a message without a type', [{ role: 'user', content: 'Hello' }]],
    ['a message whose type is null', [{ type: null, role: 'user', content: 'Hello' }]],
    ['a message', [{ type: 'message', role: 'user', content: 'Hello' }]],
    ['parts', [{ role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }]],
    ['parts named as chat completions name them', [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }]],
  ])('%s is the same question', (_, input) => {
    expect(promptOf(input)).toEqual(said);
  });

  test('what the model did in one go is one message; calls made after a result are another', () => {
    const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' });
    const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: id });
    const roles = (input: readonly object[]) =>
      promptOf([{ role: 'user', content: 'x' }, ...input]).map(({ role, content }) => [role, content.length]);
    expect(roles([call('a'), call('b'), output('a'), output('b')])).toEqual([
      ['user', 1],
      ['assistant', 2],
      ['tool', 1],
      ['tool', 1],
    ]);
    expect(roles([call('a'), output('a'), call('b'), output('b')])).toEqual([
      ['user', 1],
      ['assistant', 1],
      ['tool', 1],
      ['assistant', 1],
      ['tool', 1],
    ]);
  });

  test('a summary stands for thoughts that were not given, and what nobody can read is nothing', () => {
    const thought = (fields: object) =>
      promptOf([
        { type: 'reasoning', ...fields },
        { role: 'user', content: 'x' },
      ])[0];
    expect(thought({ summary: [{ type: 'summary_text', text: 'short' }] })).toEqual({
      role: 'assistant',
      content: [{ type: 'reasoning', text: 'short' }],
    });
    expect(thought({ summary: [], encrypted_content: 'x' })).toEqual({ role: 'assistant', content: [] });
  });

  test('a refusal is what the assistant said', () => {
    expect(promptOf([{ role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }])).toEqual([
      { role: 'assistant', content: [{ type: 'text', text: 'No.' }] },
    ]);
  });

  test('an id tells the response that it is part of', () => {
    for (const type of ['message', 'reasoning', 'function_call', 'function_call_output'] as const) {
      for (const number of [0, 1, 65_535, 65_536]) {
        expect(responseIdOfItem(itemId(type, { key: KEY, number }))).toBe(`resp_${KEY}`);
      }
    }
    for (const id of ['', 'msg_1', 'call_abc', `resp_${KEY}`, `msg_${KEY}`, `msg_${KEY}000g`, 'rs_0a1b2c']) {
      expect(responseIdOfItem(id)).toBeUndefined();
    }
  });
});

describe('what is refused, and which field is named', () => {
  const item = (fields: object) => ({ input: [{ role: 'user', content: 'x' }, fields] });
  test.each<[string, object]>([
    ['model', { model: '' }],
    ['model', { model: null }],
    ['input', { input: undefined }],
    ['input', { input: 7 }],
    ['input', { input: '' }],
    ['input', { input: [] }],
    ['input[1].type', item({})],
    ['input[1].type', item({ type: 'telepathy' })],
    ['input[1].encrypted_content', item({ type: 'compaction', encrypted_content: 'x' })],
    ['input[1].role', item({ role: 'wizard', content: 'x' })],
    ['input[1].content', item({ role: 'user', content: 7 })],
    ['input[1].content[0].text', item({ role: 'user', content: [{ type: 'input_text', text: 7 }] })],
    ['input[1].content[0].type', item({ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] })],
    ['input[1].content[0].type', item({ role: 'system', content: [{ type: 'input_image', image_url: 'x' }] })],
    ['input[1].content[0].image_url', item({ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] })],
    ['input[1].content[0]', item({ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] })],
    ['input[1].call_id', item({ type: 'function_call_output', call_id: 'nope', output: 'x' })],
    ['input[1].output', item({ type: 'function_call_output', call_id: 'nope' })],
    ['input[1].arguments', item({ type: 'function_call', call_id: 'a', name: 'f', arguments: {} })],
    ['input[1].name', item({ type: 'function_call', call_id: 'a', name: '', arguments: '{}' })],
    ['temperature', { temperature: 2.1 }],
    ['temperature', { temperature: -0.1 }],
    ['temperature', { temperature: '1' }],
    ['top_p', { top_p: 1.1 }],
    ['max_output_tokens', { max_output_tokens: 0 }],
    ['max_output_tokens', { max_output_tokens: 1.5 }],
    ['stream', { stream: 'yes' }],
    ['store', { store: 'yes' }],
    ['background', { background: 'yes' }],
    ['truncation', { truncation: 'middle' }],
    ['conversation', { conversation: 'conv_1' }],
    ['prompt', { prompt: { id: 'pmpt_1' } }],
    ['top_logprobs', { top_logprobs: 2 }],
    ['include', { include: ['message.output_text.logprobs'] }],
    ['previous_response_id', { previous_response_id: '' }],
    ['previous_response_id', { previous_response_id: 7 }],
    ['max_tool_calls', { max_tool_calls: 0 }],
    ['metadata.a', { metadata: { a: 1 } }],
    ['metadata.a', { metadata: { a: 'x'.repeat(513) } }],
    ['metadata', { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v'])) }],
    ['text.format.type', { text: { format: { type: 'xml' } } }],
    ['text.format.schema', { text: { format: { type: 'json_schema', name: 'a', schema: 'x' } } }],
    ['text.verbosity', { text: { verbosity: 'chatty' } }],
    ['reasoning.effort', { reasoning: { effort: 'enormous' } }],
    ['tools', { tools: {} }],
    ['tools[0].type', { tools: [{ type: 'teleport' }] }],
    ['tools[0].name', { tools: [{ type: 'function', name: 'a b' }] }],
    ['tools[0].name', { tools: [{ type: 'function', function: { name: 'a' } }] }],
    ['tools[0].parameters', { tools: [{ type: 'function', name: 'a', parameters: 'x' }] }],
    ['tools[0].tools[0].name', { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'function', name: '' }] }] }],
    ['tool_choice', { tool_choice: 'sometimes' }],
    ['tool_choice.type', { tool_choice: { type: 'web_search' } }],
    ['tool_choice.tools', { tool_choice: { type: 'allowed_tools' } }],
  ])('%s in %j', (param, fields) => {
    const refusal = (): unknown => parse(fields);
    expect(refusal).toThrow(RequestError);
    expect(refusal).toThrow(expect.objectContaining({ code: 'bad_request', param }));
  });

  test('an item that is not there is a 404 that names it', () => {
    expect(() => parse(item({ type: 'item_reference', id: 'msg_nope' }))).toThrow(
      expect.objectContaining({ code: 'not_found', param: 'input[1].id' }),
    );
  });

  test.each([null, 7, 'text', true, []])('a body that is %j, not an object', (body) => {
    expect(() => parseRequest(body)).toThrow(RequestError);
  });

  test('a message of an error never quotes the conversation', () => {
    try {
      parse(item({ role: 'user', content: [{ type: 'input_text', text: { secret: 'swordfish' } }] }));
      expect.unreachable();
    } catch (error) {
      expect(String(error)).not.toContain('swordfish');
    }
  });
});

test('null means "not said"', () => {
  const nulls = [
    'instructions',
    'previous_response_id',
    'store',
    'stream',
    'max_output_tokens',
    'temperature',
    'top_p',
    'frequency_penalty',
    'presence_penalty',
    'tools',
    'tool_choice',
    'parallel_tool_calls',
    'max_tool_calls',
    'text',
    'reasoning',
    'metadata',
    'include',
    'user',
    'safety_identifier',
    'prompt_cache_key',
    'truncation',
    'background',
    'top_logprobs',
    'conversation',
    'prompt',
  ];
  const plain = (fields: object) => JSON.stringify(parse(fields));
  expect(plain(Object.fromEntries(nulls.map((name) => [name, null])))).toBe(plain({}));
});

test('anything at all is either parsed or refused: never another error', () => {
  const fields = [
    'model',
    'input',
    'instructions',
    'tools',
    'tool_choice',
    'text',
    'reasoning',
    'include',
    '__proto__',
  ];
  const type = fc.constantFrom(
    ...['message', 'function_call', 'function_call_output', 'reasoning', 'item_reference', 'web_search_call', null, 7],
  );
  const item = fc.record(
    {
      type,
      role: fc.constantFrom('user', 'assistant', 'system', 'x'),
      id: fc.constantFrom('a', 'b', null),
      call_id: fc.constantFrom('a', 'b'),
      name: fc.constantFrom('f', ''),
      arguments: fc.constantFrom('{}', '{', ''),
      output: fc.oneof(fc.string(), fc.jsonValue()),
      content: fc.oneof(fc.string(), fc.jsonValue()),
      summary: fc.constantFrom([], null, [{ type: 'summary_text', text: 'x' }]),
    },
    { requiredKeys: ['type'] },
  );
  const body = fc.dictionary(
    fc.constantFrom(...fields),
    fc.oneof({ withCrossShrink: true }, fc.jsonValue(), fc.constant('m'), fc.array(item, { maxLength: 4 })),
  );
  const stored: unknown[] = [{ type: 'function_call', id: 'b', call_id: 'b', name: 'g', arguments: '{}' }];
  fc.assert(
    fc.property(body, fc.array(item, { maxLength: 4 }), (candidate, input) => {
      for (const json of [candidate, { model: 'm', input }]) {
        let items: readonly Item[];
        try {
          items = parseRequest(json, { earlier: stored }).input;
        } catch (error) {
          expect(error).toBeInstanceOf(RequestError);
          continue;
        }
        for (const one of items) expectValidItem(one);
        expect(parseKeptItems(JSON.parse(JSON.stringify(items)))).toEqual(items);
      }
    }),
    runs(10_000),
  );
});
