import { expect, test } from 'vitest';
import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { chatHistory } from '../../../../core/inference/local/chat-history.ts';
import { ServiceError } from '../../../../core/errors.ts';

const user = (text: string): LanguageModelV4Prompt[number] => ({ role: 'user', content: [{ type: 'text', text }] });
const call = (id: string, input: unknown) => ({ type: 'tool-call' as const, toolCallId: id, toolName: 'look', input });
const result = (id: string, value: string): LanguageModelV4Prompt[number] => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId: id, toolName: 'look', output: { type: 'text', value } }],
});

test('a turn with calls, their results and the answer is one turn of the model', () => {
  const prompt: LanguageModelV4Prompt = [
    { role: 'system', content: 'Be brief.' },
    user('Look twice.'),
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'Looking.' },
        call('a', { at: 1 }),
        call('b', { at: 2 }),
      ],
    },
    result('b', 'second'),
    result('a', 'first'),
    { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] },
    user('Thanks.'),
  ];
  const look = (at: number, value: string, startsNewChunk: boolean) => ({
    type: 'functionCall',
    name: 'look',
    params: { at },
    result: value,
    startsNewChunk,
  });
  expect(chatHistory(prompt)).toEqual([
    { type: 'system', text: 'Be brief.' },
    { type: 'user', text: 'Look twice.' },
    {
      type: 'model',
      response: [
        { type: 'segment', segmentType: 'thought', text: 'hm', ended: true },
        'Looking.',
        look(1, 'first', true),
        look(2, 'second', false),
        'Done.',
      ],
    },
    { type: 'user', text: 'Thanks.' },
  ]);
});

test('a call without a result has an empty one, and a failed one says that it failed', () => {
  const failed: LanguageModelV4Prompt[number] = {
    role: 'tool',
    content: [
      {
        type: 'tool-result',
        toolCallId: 'b',
        toolName: 'look',
        output: { type: 'error-text', value: 'no such place' },
      },
    ],
  };
  const [, turn] = chatHistory([user('x'), { role: 'assistant', content: [call('a', {}), call('b', {})] }, failed]);
  expect(turn).toMatchObject({ response: [{ result: '' }, { result: '{"error":"no such place"}' }] });
});

test.each([
  ['image/png', 'image input'],
  ['audio/wav', 'audio input'],
  ['application/pdf', 'files as input'],
])('%s is refused in words', (mediaType, words) => {
  const prompt: LanguageModelV4Prompt = [
    { role: 'user', content: [{ type: 'file', mediaType, data: { type: 'data', data: 'AAAA' } }] },
  ];
  expect(() => chatHistory(prompt)).toThrow(ServiceError);
  expect(() => chatHistory(prompt)).toThrow(words);
});
