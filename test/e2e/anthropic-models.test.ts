/** Anthropic's own client looks for models where OpenAI's do, and finds them in its own style. */
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;
let anthropic: Anthropic;

beforeAll(async () => {
  server = await startServer();
  anthropic = new Anthropic({ baseURL: server.url, apiKey: 'any', maxRetries: 0 });
});
afterAll(() => server?.stop());

test('are listed page by page, and found by their ids', async () => {
  const ids: string[] = [];
  for await (const { id } of anthropic.models.list({ limit: 1 })) ids.push(id);
  const openai = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
  expect(ids).toEqual(openai.data.map(({ id }) => id));
  expect(await anthropic.models.retrieve('foundation')).toEqual({
    type: 'model',
    id: 'foundation',
    display_name: 'foundation',
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: null,
    max_input_tokens: 4096,
    max_tokens: 4096,
    capabilities: null,
  } satisfies Record<keyof Anthropic.ModelInfo, unknown>);
});

test.each([
  ['an id that nobody has', 404, () => anthropic.models.retrieve('nope')],
  ['a cursor of another list', 400, () => anthropic.models.list({ after_id: 'nope' })],
  ['a page of nothing', 400, () => anthropic.models.list({ limit: 0 })],
])('%s is refused', async (_, status, request) => {
  await expect(request()).rejects.toMatchObject({ status, error: { type: 'error' } });
});
