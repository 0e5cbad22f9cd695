/** LangChain's chat models, one for each wire style, against a started server and the built-in model. */
import { ChatAnthropic } from '@langchain/anthropic';
import type { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOllama } from '@langchain/ollama';
import { ChatOpenAI } from '@langchain/openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

const model = 'foundation';
const place = z.object({ city: z.string() });
const weather = tool(() => 'sunny, 18 C', {
  name: 'get_weather',
  description: 'Get the weather',
  schema: place,
});
const person = z.object({ name: z.string(), age: z.int() });

function openai(useResponsesApi: boolean): ChatOpenAI {
  return new ChatOpenAI({ model, apiKey: 'any', configuration: { baseURL: `${server.url}/v1` }, useResponsesApi });
}

describe.each<[string, () => BaseChatModel]>([
  ['ChatOpenAI', () => openai(false)],
  ['ChatOpenAI, over Responses', () => openai(true)],
  ['ChatAnthropic', () => new ChatAnthropic({ model, apiKey: 'any', anthropicApiUrl: server.url })],
  ['ChatOllama', () => new ChatOllama({ model, baseUrl: server.url })],
])('LangChain: %s', (_, chat) => {
  test('answers, with usage', async () => {
    const answer = await chat().invoke('What is the capital of France?');
    expect(answer.text).toBe('The capital of France is Paris.');
    expect(answer.usage_metadata).toMatchObject({
      input_tokens: expect.any(Number),
      output_tokens: expect.any(Number),
    });
  });

  test('streams', async () => {
    const pieces: string[] = [];
    for await (const piece of await chat().stream('Count from 1 to 20.')) pieces.push(piece.text);
    expect(pieces.join('')).toContain('18, 19, 20');
    expect(pieces.length).toBeGreaterThan(20);
  });

  test('calls a tool, and reads its result', async () => {
    const withTools = chat().bindTools!([weather]);
    const question = new HumanMessage('What is the weather in Paris?');
    const answer = await withTools.invoke([question]);
    expect(answer.tool_calls).toMatchObject([{ name: 'get_weather', args: { city: 'Paris' } }]);
    const result = await weather.invoke(answer.tool_calls![0]!);
    expect((await withTools.invoke([question, answer, result])).text).toBe('The tool returned: sunny, 18 C');
  });

  test('gives an object by a schema', async () => {
    const structured = chat().withStructuredOutput(person, { method: 'jsonSchema' });
    expect(await structured.invoke('Give me JSON with name Ada and age 36.')).toEqual({ name: 'Ada', age: 36 });
  });

  test('gives an object as the arguments of a tool', async () => {
    const structured = chat().withStructuredOutput(place, { method: 'functionCalling', name: 'get_weather' });
    expect(await structured.invoke('What is the weather in Paris?')).toEqual({ city: 'Paris' });
  });
});
