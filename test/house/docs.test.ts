/** What the documents name is there: files, and the pages that they link to. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(join(root, name), 'utf8');
const documents = [
  ...readdirSync(root),
  ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`),
  'channel/PROTOCOL.md',
].filter((name) => name.endsWith('.md'));

/** Rooms that are still to come, which ARCHITECTURE.md says where to put. */
const PLANNED = new Set(['core/tools/']);

/** `gateway/routes.ts`, `test/attacks/`; not `gateway/wire/<style>/`, which is one of many. */
function pathsIn(text: string): string[] {
  return [...text.matchAll(/`([\w-]+\/[\w./-]*?)`/g)].map(([, path = '']) => path);
}

test.each(documents)('every page that %s links to is there', (name) => {
  const links = [...read(name).matchAll(/\]\(([^)#\s]+)/g)].map(([, link = '']) => link);
  const missing = links.filter((link) => !/^[a-z]+:/.test(link) && !existsSync(join(root, dirname(name), link)));
  expect(missing).toEqual([]);
});

test('every limit stands where docs/limits.md says', () => {
  const rows = read('docs/limits.md')
    .split('\n')
    .filter((line) => line.startsWith('| '));
  const places = rows.map((row) => row.split('|').at(-2) ?? '').flatMap(pathsIn);
  expect(places.length).toBeGreaterThan(80);
  expect(places.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('every file and folder that ARCHITECTURE.md names is there', () => {
  const lines = read('ARCHITECTURE.md').split('\n');
  const starts = lines.flatMap((line) => {
    const [, folder, , start] = line.split('|').map((cell) => cell.trim());
    const [room] = pathsIn(folder ?? '');
    return room === undefined || room.startsWith('test/')
      ? []
      : [...(start ?? '').matchAll(/`([\w./-]+\.ts)`/g)].map(([, file = '']) => join(room, file));
  });
  expect(starts.length).toBeGreaterThan(15);
  const named = pathsIn(lines.join('\n')).filter((path) =>
    /^(?:channel|identity|storage|core|gateway|clients|relay|relay-client|service|cli|test|docs|scripts)\//.test(path),
  );
  const missing = [...starts, ...named].filter((path) => !PLANNED.has(path) && !existsSync(join(root, path)));
  expect(missing).toEqual([]);
});
