import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { atOnce } from '../../../../core/steps.ts';
import { RequestError } from '../../../../gateway/errors.ts';
import { parseChatRequest } from '../../../../gateway/wire/openai/chat-request.ts';
import { runs } from '../../../support/sampling.ts';

const golden = new URL('../golden/openai-chat/requests/', import.meta.url);
const user = [{ role: 'user', content: 'Hello' }];
const parse = (fields: object) => atOnce(parseChatRequest({ model: 'm', messages: user, ...fields }));

test.each(readdirSync(golden).filter((name) => name.endsWith('.json')))('golden: %s', async (name) => {
  const { request, call } = JSON.parse(readFileSync(new URL(name, golden), 'utf8')) as {
    request: unknown;
    call: unknown;
  };
  // Through JSON, so that what is undefined is absent, as in the file.
  expect(JSON.parse(JSON.stringify(atOnce(parseChatRequest(request))))).toEqual(call);
});

describe('what is refused, and which field is named', () => {
  test.each<[string, object]>([
    ['messages', { messages: [] }],
    ['messages', { messages: 'Hello' }],
    ['model', { model: '' }],
    ['model', { model: null }],
    ['messages[0].role', { messages: [{ role: 'wizard', content: 'x' }] }],
    ['messages[0].content', { messages: [{ role: 'system', content: 7 }] }],
    ['messages[0].content[0].text', { messages: [{ role: 'user', content: [{ type: 'text', text: 7 }] }] }],
    ['messages[1].tool_call_id', { messages: [...user, { role: 'tool', tool_call_id: 'nope', content: 'x' }] }],
    ['temperature', { temperature: 2.1 }],
    ['temperature', { temperature: '1' }],
    ['top_p', { top_p: -0.1 }],
    ['max_tokens', { max_tokens: -2 }],
    ['max_completion_tokens', { max_completion_tokens: 1.5 }],
    ['seed', { seed: 1.5 }],
    ['stop', { stop: 7 }],
    ['stop', { stop: Array.from({ length: 17 }, String) }],
    ['stream', { stream: 'yes' }],
    ['n', { n: 2 }],
    ['n', { n: 0 }],
    ['logprobs', { logprobs: true }],
    ['logprobs', { top_logprobs: 3 }],
    ['logit_bias', { logit_bias: { 5: 1 } }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['functions', { functions: [] }],
    ['functions', { function_call: 'auto' }],
    ['tools[0].type', { tools: [{ type: 'custom', custom: { name: 'x' } }] }],
    ['tools[0].function.name', { tools: [{ type: 'function', function: { name: 'a b' } }] }],
    ['tools[0].function.parameters', { tools: [{ type: 'function', function: { name: 'a', parameters: 'x' } }] }],
    ['tool_choice', { tool_choice: 'sometimes' }],
    ['response_format.type', { response_format: { type: 'xml' } }],
    ['response_format.json_schema', { response_format: { type: 'json_schema' } }],
    ['reasoning_effort', { reasoning_effort: 'enormous' }],
  ])('%s in %j', (param, fields) => {
    const refusal = (): unknown => parse(fields);
    expect(refusal).toThrow(RequestError);
    expect(refusal).toThrow(expect.objectContaining({ code: 'bad_request', param }));
  });

  test.each([null, 7, 'text', true, []])('a body that is %j, not an object', (body) => {
    expect(() => atOnce(parseChatRequest(body))).toThrow(RequestError);
  });
});

test.each<[object, string | undefined]>([
  [{}, undefined],
  [{ reasoning_effort: 'none' }, 'none'],
  [{ reasoning_effort: 'xhigh' }, 'xhigh'],
  [{ enable_thinking: false, reasoning_effort: 'low' }, 'none'],
  [{ chat_template_kwargs: { enable_thinking: false } }, 'none'],
  [{ enable_thinking: true, reasoning_effort: 'none' }, undefined],
  [{ enable_thinking: true, reasoning_effort: 'low' }, 'low'],
])('%j asks for reasoning %j', (fields, reasoning) => {
  expect(parse(fields).call.reasoning).toBe(reasoning);
});

test.each<[object, object]>([
  [{ max_tokens: -1 }, { maxOutputTokens: Number.MAX_SAFE_INTEGER }],
  [{ max_completion_tokens: -1 }, { maxOutputTokens: Number.MAX_SAFE_INTEGER }],
  [{ max_tokens: 9, max_completion_tokens: 0 }, { maxOutputTokens: 9 }],
  [{ top_k: -1 }, { topK: 0 }],
])('%j is what other servers have it mean', (fields, call) => {
  expect(parse(fields).call).toMatchObject(call);
});

test('0 tokens, which forms send for an empty field, is no limit said', () => {
  expect(parse({ max_tokens: 0 }).call).not.toHaveProperty('maxOutputTokens');
});

test('null means "not said"', () => {
  const nulls = [
    'max_tokens',
    'temperature',
    'top_p',
    'seed',
    'stop',
    'tools',
    'tool_choice',
    'response_format',
    'n',
    'logprobs',
    'stream',
  ];
  expect(parse(Object.fromEntries(nulls.map((name) => [name, null])))).toEqual(parse({}));
});

test('anything at all is either parsed or refused with a field: never another error', () => {
  const fields = [
    'model',
    'messages',
    'tools',
    'tool_choice',
    'response_format',
    'stop',
    'stream_options',
    'temperature',
    'n',
    '__proto__',
  ];
  const body = fc.dictionary(
    fc.constantFrom(...fields),
    fc.oneof({ withCrossShrink: true }, fc.jsonValue(), fc.constant(user), fc.constant('m')),
  );
  fc.assert(
    fc.property(body, (candidate) => {
      try {
        atOnce(parseChatRequest(candidate));
      } catch (error) {
        expect(error).toBeInstanceOf(RequestError);
      }
    }),
    runs(20_000),
  );
});
