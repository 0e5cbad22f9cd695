import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
  await rm(server.home, { recursive: true, force: true });
});

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function ask(fields: object): Promise<Answer> {
  const messages = [{ role: 'user', content: 'What is the capital of France?' }];
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    // As it comes: JSON.stringify writes no 1e400.
    body: JSON.stringify({ model: 'foundation', messages, max_tokens: 40, ...fields }).replaceAll('"1e400"', '1e400'),
  });
  return { status: response.status, text: await response.text() };
}

const withTool = (parameters: object): Promise<Answer> =>
  ask({
    tools: [{ type: 'function', function: { name: 'look', parameters } }],
    tool_choice: { type: 'function', function: { name: 'look' } },
  });
const withProperty = (schema: object): object => ({ type: 'object', properties: { a: schema }, required: ['a'] });
const withFormat = (schema: object, strict: boolean): Promise<Answer> =>
  ask({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema, strict } } });

describe('A schema that nobody can be held to is refused, and quoted nowhere', () => {
  test.each([
    ['a value with a control character', withProperty({ const: 'SECRET-WORD\u0000' })],
    ['a choice of such values', withProperty({ enum: ['SECRET-WORD\u001f', 'b'] })],
    [
      'a property that is called so',
      { type: 'object', properties: { 'SECRET-WORD\u0000': {} }, required: ['SECRET-WORD\u0000'] },
    ],
    ['half a character', withProperty({ const: 'SECRET-WORD\ud800' })],
    ['a choice of no values', withProperty({ enum: [] })],
    ['a choice of no schemas', withProperty({ anyOf: [] })],
    ['arguments that are no object', { type: 'string', const: 'SECRET-WORD' }],
  ])('the parameters of a tool have %s: 400', async (_, parameters) => {
    const { status, text } = await withTool(parameters);
    expect([status, text]).toEqual([400, expect.not.stringContaining('SECRET-WORD')]);
  });

  test('a choice among objects steers a call, and stops none', async () => {
    expect(await withTool(withProperty({ enum: [{ b: 1 }, 'c'] }))).toMatchObject({ status: 200 });
  });

  test.each([
    ['half an item', { type: 'array', minItems: 1.5 }, 'minItems'],
    ['multiples of nothing', { type: 'integer', multipleOf: 0 }, 'multipleOf'],
    ['a bound beyond all numbers', { type: 'number', minimum: '1e400' }, 'minimum'],
    ['a pattern of half a character', { type: 'string', pattern: '^\ud800+$' }, 'pattern'],
    ['a count that is a word', { type: 'string', maxLength: 'ten' }, 'maxLength'],
  ])('a response format asks for %s: named where it is strict, and let be where not', async (_, schema, keyword) => {
    const strict = await withFormat(withProperty(schema), true);
    expect([strict.status, strict.text]).toEqual([400, expect.stringContaining(keyword)]);
    expect(await withFormat(withProperty(schema), false)).toMatchObject({ status: 200 });
  });

  test('the log of the service quotes none of it', () => {
    expect(server.log()).not.toMatch(/SECRET-WORD|::=|capital of France/);
  });
});
