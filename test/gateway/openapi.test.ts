import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { openApiDocument } from '../../gateway/openapi.ts';
import { NO_BODY_BYTES } from '../../gateway/bounds.ts';
import { routes } from '../../gateway/routes.ts';

interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
}
interface Operation {
  readonly summary: string;
  readonly parameters?: readonly { name: string }[];
  readonly requestBody?: { content: { 'application/json': { schema: object } } };
  readonly responses: object;
}

const document = JSON.parse(JSON.stringify(openApiDocument(routes, '1.2.3'))) as Document;

test('every route is in it once, under the path that its clients use, with its parameters', () => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );
  expect(operations).toHaveLength(routes.length);
  for (const expected of [
    'post /v1/chat/completions',
    'post /v1/messages',
    'post /v1/responses',
    'post /api/chat',
    'get /health',
    'get /v1/models/{id}',
    'post /agents/{id}/run',
  ]) {
    expect(operations).toContain(expected);
  }
  for (const [path, methods] of Object.entries(document.paths)) {
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    for (const operation of Object.values(methods))
      expect((operation.parameters ?? []).map(({ name }) => name)).toEqual(names);
  }
});

test('every route that parses a body shows its schema', () => {
  const posts = routes.filter(
    ({ method, handle, access, maxBodyBytes }) =>
      method === 'POST' && handle !== undefined && access === 'inference' && maxBodyBytes > NO_BODY_BYTES,
  );
  expect(posts.filter((route) => route.body === undefined).map((route) => route.path)).toEqual([]);
});

describe('the schemas are the ones that parse', () => {
  const ajv = new Ajv2020({ strict: false, logger: false });
  const schemaOf = (path: string) => document.paths[path]!['post']!.requestBody!.content['application/json'].schema;

  test.each([
    ['/v1/chat/completions', 'openai-chat/requests/'],
    ['/v1/messages', 'anthropic/requests/'],
  ])('%s accepts the golden requests', (path, folder) => {
    const validate = ajv.compile(schemaOf(path));
    const golden = new URL(`wire/golden/${folder}`, import.meta.url);
    for (const name of readdirSync(golden)) {
      const { request } = JSON.parse(readFileSync(new URL(name, golden), 'utf8')) as { request: unknown };
      expect([name, validate(request), validate.errors]).toEqual([name, true, null]);
    }
  });

  test('and refuse what the parser refuses', () => {
    const validate = ajv.compile(schemaOf('/v1/chat/completions'));
    expect(validate({ model: 'm', messages: [] })).toBe(false);
    expect(validate({ model: 'm', messages: [{ role: 'user', content: 'x' }], temperature: 3 })).toBe(false);
  });
});
