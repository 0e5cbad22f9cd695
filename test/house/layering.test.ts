/**
 * Who may import whom. The compiler enforces the same through project references; this test also says why, and
 * notices a folder that is missing from the table or has gone empty.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

interface Room {
  readonly mayImport: readonly string[];
  /** Packages that it may use; undefined leaves that open. */
  readonly packages?: readonly RegExp[];
  readonly why: string;
}

const ROOMS: Readonly<Record<string, Room>> = {
  channel: {
    mayImport: [],
    packages: [/^@noble\//],
    why: 'an auditor reads it alone, and the same files run in a browser',
  },
  'channel/node': {
    mayImport: ['channel'],
    packages: [/^@noble\//, /^node:crypto$/],
    why: 'the one place where the channel meets Node, to use its faster primitives',
  },
  identity: {
    mayImport: ['channel'],
    packages: [/^@noble\//, /^@scure\/bip39/],
    why: 'pairing is a handshake that ends in a key; devices read keys too, so it runs in a browser',
  },
  storage: {
    mayImport: [],
    packages: [/^better-sqlite3$/, /^node:/],
    why: 'the ground that whatever keeps something stands on',
  },
  'identity/node': {
    mayImport: ['identity', 'channel', 'storage'],
    why: 'where identity meets the machine: the credential store, the vault file, the list of keys',
  },
  core: {
    // A download needs to know what files a model has, and what is in their header.
    mayImport: ['storage', 'core/inference/local/model-files.ts', 'core/inference/local/memory-facts.ts'],
    why: 'usable as a library, with no route to authority: it serves no HTTP, knows no key, no caller',
  },
  'core/inference/local': {
    mayImport: ['core', 'storage'],
    why: 'one way to answer: whoever wants an answer knows the port and the catalog, and not who runs the model',
  },
  gateway: {
    mayImport: ['channel', 'channel/node', 'identity', 'identity/node', 'storage', 'core'],
    why: 'the only door',
  },
  'relay/wire': {
    mayImport: [],
    packages: [],
    why: 'the frames, and the ends of streams: the same files run in a browser, so no Node, no DOM, no package',
  },
  relay: {
    mayImport: ['relay/wire'],
    packages: [/^ws$/, /^node:/, /^prom-client$/],
    why: 'it runs alone on a rented box, and can name neither a key nor a plaintext',
  },
  'relay-client': {
    mayImport: ['relay/wire'],
    packages: [/^ws$/, /^node:/, /^https-proxy-agent$/],
    why: 'it moves opaque bytes: it can name neither a plaintext nor a key, and its signer is passed in',
  },
  'clients/sdk': {
    mayImport: ['channel', 'identity', 'relay/wire'],
    packages: [/^@noble\//],
    why: 'what a device runs, in a browser too: no Node, no DOM but fetch; it joins a relay by the pure end of its wire',
  },
  'clients/connect': {
    mayImport: [
      'clients/sdk',
      'channel',
      'identity',
      'gateway/guard.ts',
      'gateway/listener.ts',
      'gateway/peer-process.ts',
      'gateway/when-closed.ts',
      'gateway/wire/dialect.ts',
      'gateway/wire/dialects.ts',
    ],
    packages: [/^node:/],
    why: 'what a second laptop runs: a client, and no part of the gateway but its way to listen, the guard against web pages and other users, and how each wire style tells an error',
  },
  service: {
    mayImport: [
      'channel',
      'channel/node',
      'identity',
      'identity/node',
      'storage',
      'core',
      'core/inference/local',
      'gateway',
      'relay-client',
      'relay/wire',
    ],
    why: 'the only place that puts the service together, and it prints nothing',
  },
  cli: {
    mayImport: [
      'channel',
      'channel/node',
      'identity',
      'identity/node',
      'storage',
      'core',
      'core/inference/local',
      'gateway',
      'relay',
      'relay/wire',
      'relay-client',
      'clients/sdk',
      'clients/connect',
      'service',
    ],
    why: 'a command a file, and what they share',
  },
};

/** What a file imports, types included: the files of our own, by their paths from the root. */
type ImportsByFile = ReadonlyMap<string, readonly string[]>;

interface Import {
  readonly file: string;
  readonly specifier: string;
}

function sourceFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name));
}

function importsOf(file: string, source: string): Import[] {
  const pattern =
    /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+'([^']+)'|\bimport\(\s*'([^']+)'|(?:^|\n)import\s+'([^']+)'/g;
  return [...source.matchAll(pattern)].map((match) => ({ file, specifier: match[1] ?? match[2] ?? match[3] ?? '' }));
}

/** The innermost room that a path lies in. */
function roomOf(path: string): string | undefined {
  return Object.keys(ROOMS)
    .filter((room) => path.startsWith(`${room}/`))
    .toSorted((a, b) => b.length - a.length)[0];
}

function violation({ file, specifier }: Import): string | undefined {
  const from = roomOf(file);
  const room = from === undefined ? undefined : ROOMS[from];
  if (from === undefined || room === undefined) return `${file} is in no room`;
  if (!specifier.startsWith('.')) {
    const isAllowed = room.packages?.some((allowed) => allowed.test(specifier)) ?? true;
    return isAllowed ? undefined : `${file} imports ${specifier}: ${room.why}`;
  }
  const path = relative(root, resolve(root, dirname(file), specifier));
  const to = roomOf(path);
  if (to === from || room.mayImport.includes(path) || (to !== undefined && room.mayImport.includes(to)))
    return undefined;
  return `${file} imports ${specifier} (${to ?? 'outside every room'}): ${room.why}`;
}

function importsByFile(): ImportsByFile {
  const files = [...new Set(Object.keys(ROOMS).flatMap(sourceFiles))];
  return new Map(
    files.map((file) => {
      const imports = importsOf(file, readFileSync(join(root, file), 'utf8'));
      const own = imports.filter(({ specifier }) => specifier.startsWith('.'));
      return [file, own.map(({ specifier }) => join(dirname(file), specifier))];
    }),
  );
}

/** Files that import each other, if only over others: those left when whatever imports none of the rest is taken away. */
function circleIn(imports: ImportsByFile): readonly string[] {
  const rest = new Map(imports);
  for (let before = -1; before !== rest.size;) {
    before = rest.size;
    const imported = new Set([...rest.values()].flat());
    for (const [file, own] of rest) if (!imported.has(file) || !own.some((other) => rest.has(other))) rest.delete(file);
  }
  return [...rest.keys()];
}

test.each(Object.keys(ROOMS))('%s has files, and imports only what it may', (room) => {
  const files = sourceFiles(room).filter((file) => roomOf(file) === room);
  expect(files.length, `${room} is empty: take it out of the table`).toBeGreaterThan(0);
  const imports = files.flatMap((file) => importsOf(file, readFileSync(join(root, file), 'utf8')));
  expect(imports.map(violation).filter((found) => found !== undefined)).toEqual([]);
});

test('no files import each other, not even for their types', () => {
  expect(circleIn(importsByFile())).toEqual([]);
});

test('a planted circle is found, and what merely leads there is not in it', () => {
  const circle = circleIn(
    new Map([
      ['main.ts', ['a.ts']],
      ['a.ts', ['b.ts', 'leaf.ts']],
      ['b.ts', ['c.ts']],
      ['c.ts', ['a.ts']],
      ['leaf.ts', []],
    ]),
  );
  expect(circle).toEqual(['a.ts', 'b.ts', 'c.ts']);
});

test('every folder with product code is in the table', () => {
  const notRooms = new Set(['node_modules', 'dist', 'test', 'bench', 'docs', 'scripts', 'models']);
  const folders = readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !notRooms.has(entry.name))
    .map((entry) => entry.name);
  const rooms = new Set(Object.keys(ROOMS).map((room) => room.split('/')[0]));
  expect(folders.filter((folder) => !rooms.has(folder))).toEqual([]);
});

test.each([
  ['core/inference/engine.ts', "import { decide } from '../../gateway/policy.ts';"],
  ['core/inference/inference.ts', "import type { LoadPlan } from './local/load-plan.ts';"],
  ['gateway/route.ts', "import type { Residency } from '../core/inference/local/residency.ts';"],
  ['core/a.ts', "export type { Route } from '../gateway/route.ts';"],
  ['channel/records.ts', "import { createHash } from 'node:crypto';"],
  ['channel/records.ts', "const noble = await import('../core/json.ts');"],
  ['gateway/server.ts', "import '../cli/main.ts';"],
  ['clients/connect/proxy.ts', "import { decide } from '../../gateway/policy.ts';"],
])('a planted import is found: %s', (file, source) => {
  const found = importsOf(file, source).map(violation);
  expect(found).toEqual([expect.stringContaining(file)]);
});
