/** Open Responses: the AI SDK's two providers that speak it against a started server. */
import { createOpenResponses } from '@ai-sdk/open-responses';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, isStepCount, streamText, type LanguageModel } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';
import { weatherTool } from '../support/weather-tool.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

const model = 'foundation';

describe.each<[string, () => LanguageModel]>([
  ['@ai-sdk/openai', () => createOpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any' })(model)],
  [
    '@ai-sdk/open-responses',
    () => createOpenResponses({ name: 'postern', url: `${server.url}/v1/responses`, apiKey: 'any' })(model),
  ],
])('the AI SDK with %s', (_, language) => {
  const get_weather = weatherTool;

  test('generates text, with usage', async () => {
    const { text, usage, finishReason } = await generateText({
      model: language(),
      prompt: 'What is the capital of France?',
    });
    expect(text).toBe('The capital of France is Paris.');
    expect(finishReason).toBe('stop');
    expect(usage).toMatchObject({ inputTokens: expect.any(Number), outputTokens: expect.any(Number) });
  });

  test('streams text, with usage', async () => {
    const result = streamText({ model: language(), prompt: 'Count from 1 to 20.' });
    const pieces: string[] = [];
    for await (const piece of result.textStream) pieces.push(piece);
    expect(pieces.join('')).toContain('18, 19, 20');
    expect(pieces.length).toBeGreaterThan(20);
    expect((await result.usage).outputTokens).toBeGreaterThan(10);
    expect(await result.finishReason).toBe('stop');
  });

  test('shows thoughts, streamed and not', async () => {
    const ask = { model: language(), prompt: 'Think step by step: what is 3+4?' };
    const whole = await generateText(ask);
    expect(whole.reasoningText).toContain('3');
    const streamed = streamText(ask);
    await streamed.consumeStream();
    expect(await streamed.reasoningText).toContain('3');
    expect((await streamed.usage).outputTokenDetails.reasoningTokens).toBeGreaterThan(5);
  });

  test('runs a tool loop', async () => {
    const { text, steps } = await generateText({
      model: language(),
      prompt: 'What is the weather in Paris?',
      stopWhen: isStepCount(3),
      tools: { get_weather },
    });
    expect(steps).toHaveLength(2);
    expect(steps[0]?.finishReason).toBe('tool-calls');
    expect(text).toBe('The tool returned: sunny, 18 C');
  });

  test('runs a tool loop as a stream, and goes on with the conversation', async () => {
    const ask = { role: 'user' as const, content: 'What is the weather in Paris?' };
    const result = streamText({ model: language(), messages: [ask], stopWhen: isStepCount(3), tools: { get_weather } });
    expect(await result.text).toBe('The tool returned: sunny, 18 C');
    const { messages } = await result.response;
    const next = await generateText({
      model: language(),
      messages: [ask, ...messages, { role: 'user', content: 'What is the capital of France?' }],
      tools: { get_weather },
    });
    expect(next.text).toBe('The capital of France is Paris.');
  });

  test('tells an error as the service tells it', async () => {
    const failure = generateText({ model: language(), prompt: 'Hello', temperature: 3, maxRetries: 0 });
    await expect(failure).rejects.toMatchObject({ statusCode: 400, message: expect.stringContaining('temperature') });
  });
});
