/**
 * What ARCHITECTURE.md says of adding a wire style is true: in a copy of the sources one is added so, and no otherwise.
 * It is served like the others then, by rules that it says nothing of.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';

const root = resolve(import.meta.dirname, '../..');
const COPIED = [
  ...['channel', 'identity', 'storage', 'core', 'gateway', 'relay', 'relay-client', 'clients', 'service', 'cli'],
  ...['scripts', 'dist', 'models', 'package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.base.json'],
];

let copy: string;
let server: TestServer | undefined;
beforeAll(async () => {
  copy = mkdtempSync(join(tmpdir(), 'postern-copy-'));
  for (const name of COPIED) cpSync(join(root, name), join(copy, name), { recursive: true, preserveTimestamps: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  addStyle();
  const built = spawnSync(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `const { build } = await import('${join(copy, 'scripts/prepare.mjs')}'); await build();`,
    ],
    { encoding: 'utf8' },
  );
  expect(built).toMatchObject({ status: 0 });
  server = await startServer({ program: [join(copy, 'dist/postern/bin.js'), 'serve'] });
}, 120_000);
afterAll(async () => {
  await server?.stop();
  rmSync(copy, { recursive: true, force: true });
});

const touched: string[] = [];

/** One row of the table says all of it. */
function addStyle(): void {
  write('gateway/wire/lines/dialect.ts', 'dialect');
  write('gateway/wire/lines/answer.ts', 'answer');
  write('gateway/routes/inference/lines.ts', 'route');
  replace('gateway/wire/dialect.ts', "readonly name: '", "readonly name: 'lines' | '");
  replace(
    'gateway/wire/dialects.ts',
    'import type { Dialect }',
    "import { lines } from './lines/dialect.ts';\nimport type { Dialect }",
  );
  replace('gateway/wire/dialects.ts', 'DIALECTS: readonly Dialect[] = [', 'DIALECTS: readonly Dialect[] = [lines, ');
  replace('gateway/routes.ts', 'import {', "import { createLine } from './routes/inference/lines.ts';\nimport {");
  replace('gateway/routes.ts', '\n  completions,\n', '\n  completions,\n  createLine,\n');
}

function write(path: string, name: string): void {
  mkdirSync(dirname(join(copy, path)), { recursive: true });
  writeFileSync(join(copy, path), readFileSync(join(import.meta.dirname, 'lines-style', `${name}.ts.txt`)));
  touched.push(path);
}

function replace(path: string, from: string, to: string): void {
  const text = readFileSync(join(copy, path), 'utf8');
  expect(text).toContain(from);
  writeFileSync(
    join(copy, path),
    text.replace(from, () => to),
  );
  touched.push(path);
}

const post = (body: object): Promise<Response> =>
  fetch(`${server?.url}/v1/lines`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

test('the row in ARCHITECTURE.md names every place that was touched', () => {
  const row = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
    .split('\n')
    .find((line) => line.startsWith('| a wire style'));
  const named = [...(row ?? '').matchAll(/`(gateway\/[\w./<>-]+)`/g)].map(([, path = '']) =>
    path.replace('<style>', 'lines'),
  );
  expect(
    touched.filter((path) => !named.some((name) => path === name || (name.endsWith('/') && path.startsWith(name)))),
  ).toEqual([]);
});

test('it answers, whole and as a stream', async () => {
  const whole = await post({ model: 'foundation', line: 'What is the capital of France?' });
  expect(await whole.json()).toEqual({ line: 'The capital of France is Paris.' });
  const stream = await post({ model: 'foundation', line: 'What is the capital of France?', stream: true });
  expect(stream.headers.get('content-type')).toBe('application/x-ndjson');
  const pieces = (await stream.text())
    .trim()
    .split('\n')
    .map((text) => (JSON.parse(text) as { line: string }).line);
  expect(pieces.length).toBeGreaterThan(1);
  expect(pieces.join('')).toBe('The capital of France is Paris.');
});

test.each([
  ['a model that is not there', { model: 'nothing', line: 'Hello' }, 404, /^model_not_found: /],
  ['a field that is missing', { model: 'foundation' }, 400, /^bad_request: line: /],
])('it refuses %s in its own words', async (_, body, status, words) => {
  const refused = await post(body);
  expect(refused.status).toBe(status);
  expect(await refused.json()).toEqual({ trouble: expect.stringMatching(words) as string });
});

test('what holds for every style holds for it: policy, the OpenAPI document, the request log', async () => {
  const foreign = await fetch(`${server?.url}/lines`, { method: 'POST', headers: { via: '1.1 proxy' }, body: '{}' });
  expect(foreign.status).toBe(401);
  expect(await foreign.json()).toEqual({
    trouble: expect.stringMatching(/^unauthenticated: /) as string,
  });
  const document = (await (await fetch(`${server?.url}/openapi.json`)).json()) as { paths: Record<string, unknown> };
  expect(document.paths['/v1/lines']).toMatchObject({ post: { summary: 'A line for a line.' } });
  const token = (await server?.runToken()) ?? '';
  const log = await fetch(`${server?.url}/admin/requests`, { headers: { authorization: `Bearer ${token}` } });
  expect(JSON.stringify(await log.json())).toContain('/v1/lines');
});
