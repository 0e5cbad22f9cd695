/** One rule says which style a client speaks; here it meets every address that there is. */
import { expect, test } from 'vitest';
import { withoutAlias } from '../../../gateway/path-alias.ts';
import { routes } from '../../../gateway/routes.ts';
import type { CallField, WireError } from '../../../gateway/wire/dialect.ts';
import { dialectOf, DIALECTS } from '../../../gateway/wire/dialects.ts';

const ANTHROPIC = { 'anthropic-version': '2023-06-01' };

test.each([
  ['/v1/chat/completions', {}, 'openai'],
  ['/api/chat/completions', {}, 'openai'],
  ['/v1/chat/completions', ANTHROPIC, 'openai'],
  ['/v1/responses', ANTHROPIC, 'responses'],
  ['/v1/responses/resp_1/input_items?limit=1', {}, 'responses'],
  ['/v1/messages', {}, 'anthropic'],
  ['/messages/count_tokens?beta=true', {}, 'anthropic'],
  ['/api/messages', {}, 'anthropic'],
  ['/v1/messagesque', {}, 'openai'],
  ['/v1/models', {}, 'openai'],
  ['/v1/models', ANTHROPIC, 'anthropic'],
  ['/api/chat', {}, 'ollama'],
  ['/api/chat/', {}, 'ollama'],
  ['/api/chat', ANTHROPIC, 'ollama'],
  ['/v1/chat#x', {}, 'ollama'],
  ['/api/blobs/sha256:00', {}, 'ollama'],
  ['/api/nowhere', {}, 'ollama'],
  ['/v1/api/nowhere', {}, 'ollama'],
  ['/api', {}, 'ollama'],
  ['/apiary', {}, 'openai'],
  ['/', {}, 'openai'],
  ['', {}, 'openai'],
])('%s with %j is spoken to by clients of %s', (url, headers, name) => {
  expect(dialectOf({ url, headers }).name).toBe(name);
});

test('an address of one style is in the table of routes under that style’s prefix', () => {
  const ofOllama = routes.filter(({ clientPrefix }) => clientPrefix === '/api');
  expect(ofOllama.length).toBeGreaterThan(0);
  for (const { path } of ofOllama) expect(dialectOf({ url: path, headers: {} }).name).toBe('ollama');
});

test('no address belongs to two styles', () => {
  const paths = DIALECTS.flatMap(({ paths: own }) => own);
  expect(new Set(paths).size).toBe(paths.length);
  expect(paths.map((path) => withoutAlias(path))).toEqual(paths);
});

const ERROR: WireError = { code: 'x', status: 500, type: 'internal_error', message: 'two\nlines', param: undefined };

test.each(DIALECTS.map((dialect) => [dialect.name, dialect] as const))(
  '%s ends a stream with the same error that it answers with, as one event or line',
  (_, { encodeError, encodeStreamError, stream }) => {
    const words = encodeStreamError(ERROR);
    const [, data = words] = /^(?:event: \w+\n)?data: (.*)\n\n$/.exec(words) ?? [];
    expect(JSON.parse(data)).toEqual(encodeError(ERROR));
    expect(data.trimEnd()).not.toContain('\n');
    expect(stream.headers['content-type']?.startsWith(stream.contentType)).toBe(true);
  },
);

test.each([
  ['/v1/chat/completions', { prompt: 'messages', toolChoice: 'tool_choice', responseFormat: 'response_format' }],
  ['/v1/completions', { prompt: 'prompt', model: 'model' }],
  ['/v1/responses', { prompt: 'input', toolChoice: 'tool_choice', responseFormat: 'text.format' }],
  ['/v1/models/nope', { model: 'model' }],
])('%s has names of its own for the parts of a call', (url, names) => {
  const { encodeError } = dialectOf({ url, headers: {} });
  for (const [field, param] of Object.entries(names) as [CallField, string][]) {
    expect(encodeError({ ...ERROR, field })).toMatchObject({ error: { param } });
  }
  // What the style's own parser found is named already.
  expect(encodeError({ ...ERROR, param: 'input[1].id' })).toMatchObject({ error: { param: 'input[1].id' } });
  expect(encodeError(ERROR)).toMatchObject({ error: { param: null } });
});
