/** OpenAI's Agents SDK, over Responses and over chat completions, against a started server and the built-in model. */
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

const weather = tool({
  name: 'get_weather',
  description: 'Get the weather',
  parameters: z.object({ city: z.string() }),
  execute: () => 'sunny, 18 C',
});
const person = z.object({ name: z.string(), age: z.int() });

describe.each([
  ['Responses', true],
  ['chat completions', false],
])('OpenAI Agents over %s', (_, useResponses) => {
  const runner = (): Runner =>
    new Runner({
      model: 'foundation',
      modelProvider: new OpenAIProvider({ baseURL: `${server.url}/v1`, apiKey: 'any', useResponses }),
      tracingDisabled: true,
    });

  test('runs a tool loop', async () => {
    const agent = new Agent({ name: 'Assistant', instructions: 'You are a helpful assistant.', tools: [weather] });
    const { finalOutput, newItems } = await runner().run(agent, 'What is the weather in Paris?');
    expect(finalOutput).toContain('sunny, 18 C');
    expect(newItems.map(({ type }) => type)).toEqual([
      'tool_call_item',
      'tool_call_output_item',
      'message_output_item',
    ]);
  });

  test('runs a tool loop as a stream', async () => {
    const agent = new Agent({ name: 'Assistant', instructions: 'You are a helpful assistant.', tools: [weather] });
    const run = await runner().run(agent, 'What is the weather in Paris?', { stream: true });
    let text = '';
    for await (const piece of run.toTextStream()) text += piece;
    await run.completed;
    expect(text).toContain('sunny, 18 C');
  });

  test('gives an object by a schema', async () => {
    const agent = new Agent({ name: 'Assistant', outputType: person });
    const { finalOutput } = await runner().run(agent, 'Give me JSON with name Ada and age 36.');
    expect(finalOutput).toEqual({ name: 'Ada', age: 36 });
  });
});
