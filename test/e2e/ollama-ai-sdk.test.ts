/**
 * The AI SDK with `ai-sdk-ollama` against a started server and the built-in model.
 */
import { generateText, jsonSchema, Output, isStepCount, streamText } from 'ai';
import { createOllama } from 'ai-sdk-ollama';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';
import { weatherTool } from '../support/weather-tool.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.stop());

const provider = () => createOllama({ baseURL: server.url });
const tools = {
  get_weather: weatherTool,
};

test('streams text, and tells what it cost', async () => {
  const { text, usage } = streamText({ model: provider()('foundation'), prompt: 'Count from 1 to 20.' });
  expect(await text).toContain('18, 19, 20');
  expect(await usage).toMatchObject({ inputTokens: expect.any(Number), outputTokens: expect.any(Number) });
});

test('runs a tool loop, whole and streamed', async () => {
  const request = {
    model: provider()('foundation'),
    prompt: 'What is the weather in Paris?',
    stopWhen: isStepCount(3),
    tools,
  };
  const whole = await generateText(request);
  expect(whole.steps).toHaveLength(2);
  expect(whole.text).toBe('The tool returned: sunny, 18 C');
  const streamed = streamText(request);
  expect(await streamed.text).toBe('The tool returned: sunny, 18 C');
  expect(await streamed.steps).toHaveLength(2);
});

test('objects and thoughts', async () => {
  const schema = jsonSchema<{ name: string; age: number }>({
    type: 'object',
    properties: { name: { type: 'string' }, age: { type: 'integer' } },
    required: ['name', 'age'],
  });
  const { output } = await generateText({
    model: provider()('foundation'),
    prompt: 'Give me JSON with name Ada and age 36.',
    output: Output.object({ schema }),
  });
  expect(output).toEqual({ name: 'Ada', age: 36 });
  const { reasoningText } = await generateText({
    model: provider()('foundation', { think: true }),
    prompt: 'Think step by step: what is 3+4?',
  });
  expect(reasoningText).toContain('3');
});
