import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { modelOptionsOf } from '../../../../core/inference/model-port.ts';
import { atOnce } from '../../../../core/steps.ts';
import { RequestError } from '../../../../gateway/errors.ts';
import { parseShowRequest } from '../../../../gateway/wire/ollama/models.ts';
import { parseChatRequest, parseGenerateRequest } from '../../../../gateway/wire/ollama/request.ts';
import { runs } from '../../../support/sampling.ts';

const golden = new URL('../golden/ollama/requests/', import.meta.url);
const user = [{ role: 'user', content: 'Hello' }];
const chat = (fields: object) => atOnce(parseChatRequest({ model: 'm', messages: user, ...fields }));
const generate = (fields: object) => atOnce(parseGenerateRequest({ model: 'm', prompt: 'Hello', ...fields }));

test.each(readdirSync(golden))('golden: %s', (name) => {
  const { route, request, parsed } = JSON.parse(readFileSync(new URL(name, golden), 'utf8')) as {
    route: 'chat' | 'generate';
    request: unknown;
    parsed: unknown;
  };
  const parse = route === 'chat' ? parseChatRequest : parseGenerateRequest;
  // Through JSON, so that what is undefined is absent, as in the file.
  expect(JSON.parse(JSON.stringify(atOnce(parse(request))))).toEqual(parsed);
});

const refuses = (parse: () => unknown, param: string) => {
  expect(parse).toThrow(RequestError);
  expect(parse).toThrow(
    expect.objectContaining({ code: 'bad_request', param, message: expect.stringContaining(param) }),
  );
};

const call = { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: {} } }] };
const tool = (fields: object) => ({ role: 'tool', content: 'x', ...fields });

describe('what both routes refuse, and which field is named', () => {
  test.each<[string, object]>([
    ['model', { model: '' }],
    ['model', { model: null }],
    ['stream', { stream: 'yes' }],
    ['options', { options: 'fast' }],
    ['options.temperature', { options: { temperature: 101 } }],
    ['options.temperature', { options: { temperature: '1' } }],
    ['options.top_p', { options: { top_p: -0.1 } }],
    ['options.top_k', { options: { top_k: 1.5 } }],
    ['options.min_p', { options: { min_p: 2 } }],
    ['options.repeat_penalty', { options: { repeat_penalty: 0 } }],
    ['options.presence_penalty', { options: { presence_penalty: 3 } }],
    ['options.frequency_penalty', { options: { frequency_penalty: -3 } }],
    ['options.seed', { options: { seed: 1.5 } }],
    ['options.num_predict', { options: { num_predict: -3 } }],
    ['options.num_ctx', { options: { num_ctx: -1 } }],
    ['options.stop', { options: { stop: 7 } }],
    ['options.stop', { options: { stop: Array.from({ length: 17 }, String) } }],
    ['options.mirostat', { options: { mirostat: 2 } }],
    ['options.tfs_z', { options: { tfs_z: 0.5 } }],
    ['options.typical_p', { options: { typical_p: 0.5 } }],
    ['options.repeat_last_n', { options: { repeat_last_n: -2 } }],
    ['options.penalize_newline', { options: { penalize_newline: false } }],
    ['format', { format: 'xml' }],
    ['format', { format: ['json'] }],
    ['think', { think: 'enormous' }],
    ['keep_alive', { keep_alive: '5 minutes' }],
    ['keep_alive', { keep_alive: 'm' }],
    ['keep_alive', { keep_alive: {} }],
    ['logprobs', { logprobs: true }],
    ['logprobs', { top_logprobs: 3 }],
  ])('%s in %j', (param, fields) => {
    refuses(() => chat(fields), param);
    refuses(() => generate(fields), param);
  });

  test.each([[null], [[]], ['text'], [7]])('a body that is %j', (body) => {
    expect(() => atOnce(parseChatRequest(body))).toThrow(RequestError);
    expect(() => atOnce(parseGenerateRequest(body))).toThrow(RequestError);
    expect(() => parseShowRequest(body)).toThrow(RequestError);
  });
});

describe('what chat refuses', () => {
  test.each<[string, object]>([
    ['messages', { messages: 'Hello' }],
    ['messages[0].role', { messages: [{ role: 'wizard', content: 'x' }] }],
    ['messages[0].content', { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] }],
    ['messages[0].images', { messages: [{ role: 'user', content: 'x', images: 'AAAA' }] }],
    ['messages[0].images', { messages: [{ role: 'system', content: 'x', images: ['AAAA'] }] }],
    ['messages[1].images', { messages: [call, tool({ images: ['AAAA'] })] }],
    ['messages[0].thinking', { messages: [{ role: 'assistant', content: 'x', thinking: true }] }],
    ['messages[0].tool_calls[0].function.name', { messages: [{ role: 'assistant', tool_calls: [{ function: {} }] }] }],
    [
      'messages[0].tool_calls[0].function.arguments',
      { messages: [{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: '{}' } }] }] },
    ],
    ['messages[0]', { messages: [tool({})] }],
    ['messages[1].tool_name', { messages: [call, tool({ tool_name: 'g' })] }],
    ['messages[1].tool_call_id', { messages: [call, tool({ tool_call_id: 'b' })] }],
    ['messages[2]', { messages: [call, tool({}), tool({})] }],
    ['messages[2].tool_call_id', { messages: [call, tool({}), tool({ tool_call_id: 'a' })] }],
    ['tools', { tools: {} }],
    ['tools[0].type', { tools: [{ type: 'web_search' }] }],
    ['tools[0].function.name', { tools: [{ type: 'function', function: { name: 'a b' } }] }],
    ['tools[0].function.parameters', { tools: [{ type: 'function', function: { name: 'a', parameters: 'x' } }] }],
  ])('%s in %j', (param, fields) => refuses(() => chat(fields), param));
});

describe('what generate refuses', () => {
  test.each<[string, object]>([
    ['prompt', { prompt: ['Hello'] }],
    ['suffix', { suffix: 'end' }],
    ['images[0]', { images: [7] }],
    ['context', { context: 'text' }],
    ['system', { raw: true, system: 'Be brief.' }],
    ['context', { raw: true, context: [1] }],
    ['format', { raw: true, format: 'json' }],
  ])('%s in %j', (param, fields) => refuses(() => generate(fields), param));
});

test('show takes model or name, and nothing that it cannot show', () => {
  const shown = { model: 'm', ignored: [] };
  expect(parseShowRequest({ model: 'm' })).toEqual(shown);
  expect(parseShowRequest({ name: 'm' })).toEqual(shown);
  expect(parseShowRequest({ model: '', name: 'm', verbose: false })).toEqual(shown);
  expect(parseShowRequest({ model: 'm', name: 'other' })).toEqual(shown);
  expect(parseShowRequest({ model: 'm', verbose: true })).toEqual({ model: 'm', ignored: ['verbose'] });
  refuses(() => parseShowRequest({}), 'model');
  refuses(() => parseShowRequest({ model: 7 }), 'model');
});

describe('keep_alive', () => {
  test.each([
    ['5m'],
    ['1h30m'],
    ['300ms'],
    ['-1s'],
    ['.5s'],
    ['2.5h'],
    [300],
    [-1],
    [0.5],
    [null],
    ['300'],
    ['-1'],
    [''],
  ])('%j loads a model that is asked nothing', (keepAlive) => {
    expect(chat({ messages: [], keep_alive: keepAlive })).toMatchObject({ task: 'load' });
    expect(generate({ prompt: '', keep_alive: keepAlive })).toMatchObject({ task: 'load' });
  });

  test.each([[0], ['0'], ['0s'], ['0m0s'], ['0.0h']])('%j lets go of it', (keepAlive) => {
    expect(chat({ messages: null, keep_alive: keepAlive })).toMatchObject({ task: 'unload' });
    expect(generate({ prompt: undefined, keep_alive: keepAlive })).toMatchObject({ task: 'unload' });
  });

  test('has no say in what is answered', () => {
    expect(chat({ keep_alive: 0 })).toEqual({ ...chat({}), ignored: ['keep_alive'] });
  });
});

test('what has no effect is named, what was not sent is not', () => {
  const options = { num_ctx: 4096, num_gpu: 1, use_mmap: null, temperature: 1 };
  expect(chat({ options }).ignored).toEqual(['options.num_gpu']);
  expect(chat({ options })).toMatchObject({ call: { providerOptions: { postern: { contextTokens: 4096 } } } });
  expect(generate({ context: [], keep_alive: null }).ignored).toEqual([]);
});

test('defaults that clients send along ask for nothing', () => {
  const defaults = { mirostat: 0, mirostat_tau: 5, tfs_z: 1, typical_p: 1, penalize_newline: true, num_ctx: 0 };
  expect(chat({ options: defaults, format: '', images: null, think: null })).toEqual(chat({}));
});

test.each([
  [{ temperature: 5 }, { temperature: 5 }],
  [{ top_k: -1 }, { topK: 0 }],
  [{ repeat_last_n: -1 }, { providerOptions: { postern: { penaltyWindow: -1 } } }],
  [{ repeat_last_n: 0 }, { providerOptions: { postern: { penaltyWindow: 0 } } }],
])('%j is what Ollama has it mean', (options, meant) => {
  expect(chat({ options })).toMatchObject({ call: meant });
});

test('a template has no effect, and is named; raw text has none anyway', () => {
  expect(generate({ template: '{{ .Prompt }}' })).toMatchObject({ ignored: ['template'] });
  expect(generate({ template: '{{ .Prompt }}', raw: true })).toMatchObject({ ignored: [] });
  expect(generate({ template: '' })).toMatchObject({ ignored: [] });
});

test('results of calls that differ in nothing go to them in their order', () => {
  const twice = {
    role: 'assistant',
    tool_calls: [call.tool_calls[0], call.tool_calls[0]].map((one) => ({ ...one, id: undefined })),
  };
  const results = [tool({ tool_name: 'f', content: 'first' }), tool({ tool_name: 'f', content: 'second' })];
  const request = chat({ messages: [twice, ...results] });
  const prompt = request.task === 'answer' ? request.call.prompt : [];
  expect(prompt[0]?.content).toMatchObject([{ toolCallId: 'call_0_0' }, { toolCallId: 'call_0_1' }]);
  expect(prompt[1]?.content).toMatchObject([{ toolCallId: 'call_0_0', output: { value: 'first' } }]);
  expect(prompt[2]?.content).toMatchObject([{ toolCallId: 'call_0_1', output: { value: 'second' } }]);
});

/** Whatever is sent, only two things come of it; and what is made for the port, the port takes. */
test('anything else is a request or a refusal that names a field', () => {
  const value = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom<unknown>(-1, 0, 1, true, '5m', 'json', 'high', [1], ['x'], {}),
  );
  const names = ['stream', 'options', 'format', 'think', 'keep_alive', 'messages', 'tools', 'prompt', 'system', 'raw'];
  const optionNames = ['temperature', 'top_k', 'seed', 'num_predict', 'stop', 'num_ctx', 'mirostat'];
  const options = fc.dictionary(fc.constantFrom(...optionNames), value, { maxKeys: 3 });
  const body = fc
    .tuple(fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 4 }), fc.option(options, { nil: undefined }))
    .map(([fields, some]) => ({ ...fields, ...(some === undefined ? {} : { options: some }) }));
  fc.assert(
    fc.property(body, fc.constantFrom(chat, generate), (fields, parse) => {
      try {
        const request = parse(fields);
        if (request.task === 'answer') modelOptionsOf(request.call);
      } catch (error) {
        expect(error).toBeInstanceOf(RequestError);
        expect((error as RequestError).param).toBeTypeOf('string');
      }
    }),
    runs(5000),
  );
});
