/**
 * One conversation, told in four languages: whichever a client speaks, the model reads the same. Two tool calls, their
 * results, a system prompt and a tool's definition are in it.
 */
import { expect, test } from 'vitest';
import { chatHistory } from '../../../core/inference/local/chat-history.ts';
import type { ModelCall } from '../../../core/inference/model-port.ts';
import { atOnce } from '../../../core/steps.ts';
import { parseMessagesRequest } from '../../../gateway/wire/anthropic/request.ts';
import { parseChatRequest as parseOllamaRequest } from '../../../gateway/wire/ollama/request.ts';
import { parseChatRequest } from '../../../gateway/wire/openai/chat-request.ts';
import { parseRequest as parseResponsesRequest } from '../../support/responses-golden.ts';

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const description = 'Get the weather';
const [paris, oslo] = [{ city: 'Paris' }, { city: 'Oslo' }];
const tool = { name: 'get_weather', description, parameters: schema };

const calls: Readonly<Record<string, () => ModelCall>> = {
  'OpenAI chat': () =>
    atOnce(
      parseChatRequest({
        model: 'm',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Weather in Paris and Oslo?' },
          {
            role: 'assistant',
            content: 'Looking.',
            tool_calls: [
              { id: 'a', type: 'function', function: { name: 'get_weather', arguments: JSON.stringify(paris) } },
              { id: 'b', type: 'function', function: { name: 'get_weather', arguments: JSON.stringify(oslo) } },
            ],
          },
          { role: 'tool', tool_call_id: 'a', content: '18 C' },
          { role: 'tool', tool_call_id: 'b', content: '9 C' },
          { role: 'assistant', content: 'Paris is warmer.' },
          { role: 'user', content: 'Thanks.' },
        ],
        tools: [{ type: 'function', function: tool }],
      }),
    ).call,
  'Anthropic messages': () =>
    atOnce(
      parseMessagesRequest({
        model: 'm',
        max_tokens: 100,
        system: 'Be brief.',
        messages: [
          { role: 'user', content: 'Weather in Paris and Oslo?' },
          {
            role: 'assistant',
            content: [
              { type: 'text', text: 'Looking.' },
              { type: 'tool_use', id: 'a', name: 'get_weather', input: paris },
              { type: 'tool_use', id: 'b', name: 'get_weather', input: oslo },
            ],
          },
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: 'a', content: '18 C' },
              { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: '9 C' }] },
            ],
          },
          { role: 'assistant', content: [{ type: 'text', text: 'Paris is warmer.' }] },
          { role: 'user', content: [{ type: 'text', text: 'Thanks.' }] },
        ],
        tools: [{ name: 'get_weather', description, input_schema: schema }],
      }),
    ).call,
  'Open Responses': () =>
    parseResponsesRequest({
      model: 'm',
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: 'Weather in Paris and Oslo?' },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Looking.' }] },
        { type: 'function_call', call_id: 'a', name: 'get_weather', arguments: JSON.stringify(paris) },
        { type: 'function_call', call_id: 'b', name: 'get_weather', arguments: JSON.stringify(oslo) },
        { type: 'function_call_output', call_id: 'a', output: '18 C' },
        { type: 'function_call_output', call_id: 'b', output: '9 C' },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Paris is warmer.' }] },
        { role: 'user', content: [{ type: 'input_text', text: 'Thanks.' }] },
      ],
      tools: [{ type: 'function', ...tool }],
    }).call,
  Ollama: () => {
    const request = atOnce(
      parseOllamaRequest({
        model: 'm',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Weather in Paris and Oslo?' },
          {
            role: 'assistant',
            content: 'Looking.',
            tool_calls: [
              { function: { name: 'get_weather', arguments: paris } },
              { function: { name: 'get_weather', arguments: oslo } },
            ],
          },
          { role: 'tool', tool_name: 'get_weather', content: '18 C' },
          { role: 'tool', tool_name: 'get_weather', content: '9 C' },
          { role: 'assistant', content: 'Paris is warmer.' },
          { role: 'user', content: 'Thanks.' },
        ],
        tools: [{ type: 'function', function: tool }],
      }),
    );
    if (request.task !== 'answer') throw new Error('expected a request for an answer');
    return request.call;
  },
};

const look = (params: object, result: string, startsNewChunk: boolean) => ({
  type: 'functionCall',
  name: 'get_weather',
  params,
  result,
  startsNewChunk,
});

test.each(Object.keys(calls))('%s', (style) => {
  const { prompt, tools } = calls[style]!();
  expect(chatHistory(prompt)).toEqual([
    { type: 'system', text: 'Be brief.' },
    { type: 'user', text: 'Weather in Paris and Oslo?' },
    { type: 'model', response: ['Looking.', look(paris, '18 C', true), look(oslo, '9 C', false), 'Paris is warmer.'] },
    { type: 'user', text: 'Thanks.' },
  ]);
  expect(tools).toEqual([{ type: 'function', name: 'get_weather', description, inputSchema: schema }]);
});
