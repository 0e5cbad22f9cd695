import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { RequestError } from '../../../../gateway/errors.ts';
import { parseCompletionRequest } from '../../../../gateway/wire/openai/completions-request.ts';

const golden = new URL('../golden/completions/requests/', import.meta.url);
const parse = (fields: object) => parseCompletionRequest({ model: 'm', prompt: 'Once', ...fields });

test.each(readdirSync(golden))('golden: %s', (name) => {
  const { request, parsed } = JSON.parse(readFileSync(new URL(name, golden), 'utf8')) as {
    request: unknown;
    parsed: unknown;
  };
  expect(parseCompletionRequest(request)).toEqual(parsed);
});

describe('what is refused, and which field is named', () => {
  test.each<[string, object]>([
    ['model', { model: '' }],
    ['prompt', { prompt: '' }],
    ['prompt', { prompt: null }],
    ['prompt', { prompt: [] }],
    ['prompt', { prompt: ['a', 'b'] }],
    ['prompt', { prompt: [''] }],
    ['prompt[0]', { prompt: [1, 2] }],
    ['prompt[0]', { prompt: [[1, 2]] }],
    ['max_tokens', { max_tokens: -2 }],
    ['max_tokens', { max_tokens: 1.5 }],
    ['temperature', { temperature: 2.1 }],
    ['top_p', { top_p: 1.1 }],
    ['frequency_penalty', { frequency_penalty: 3 }],
    ['presence_penalty', { presence_penalty: -3 }],
    ['seed', { seed: 1.5 }],
    ['stop', { stop: 7 }],
    ['stop', { stop: Array.from({ length: 17 }, String) }],
    ['stream', { stream: 'yes' }],
    ['stream_options.include_usage', { stream_options: { include_usage: 1 } }],
    ['echo', { echo: 'yes' }],
    ['n', { n: 2 }],
    ['best_of', { best_of: 3 }],
    ['logprobs', { logprobs: 0 }],
    ['logit_bias', { logit_bias: { 5: 1 } }],
  ])('%s in %j', (param, fields) => {
    const refusal = (): unknown => parse(fields);
    expect(refusal).toThrow(RequestError);
    expect(refusal).toThrow(
      expect.objectContaining({ code: 'bad_request', param, message: expect.stringContaining(param) }),
    );
  });

  test.each([['suffix'], ['middle']])('text after the gap (%s) is unsupported', (param) => {
    const refusal = (): unknown => parse({ [param]: 'the end' });
    expect(refusal).toThrow(RequestError);
    expect(refusal).toThrow(expect.objectContaining({ code: 'unsupported', param }));
  });
});

test('a text with nothing after it is continued, however that is said', () => {
  for (const fields of [{ suffix: '' }, { suffix: null }, { middle: '' }, { prompt: ['Once'] }])
    expect(parse(fields)).toEqual(parse({}));
});

test("says OpenAI's sixteen tokens where the client says none", () => {
  const styleDefaults = { maxTokens: 16 };
  expect(parse({}).call.providerOptions).toMatchObject({ postern: { styleDefaults } });
  expect(parse({ max_tokens: null }).call.maxOutputTokens).toBeUndefined();
  expect(parse({ max_tokens: 400 }).call.maxOutputTokens).toBe(400);
  expect(parse({ max_tokens: 0 }).call.maxOutputTokens).toBeUndefined();
  expect(parse({ max_tokens: -1 }).call.maxOutputTokens).toBe(Number.MAX_SAFE_INTEGER);
});
