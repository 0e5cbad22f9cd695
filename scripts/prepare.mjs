// Compiles what is served, after install.mjs has fetched what that takes. Every front door comes through both. A stamp
// says what the result was made from, so that a start at which nothing changed costs a hash and no more.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What is served. Tests and benchmarks are compiled by their own commands, so that they can't keep it from starting. */
const SOURCE_FOLDERS = [
  'channel',
  'identity',
  'storage',
  'core',
  'gateway',
  'relay',
  'relay-client',
  'clients',
  'service',
  'cli',
];
const BUILD_STAMP = join(root, 'dist', '.postern-build');

/** Compiles what changed. `tsc --build` is incremental by itself; the stamp saves even starting it. */
export async function build() {
  const beside = ['tsconfig.base.json', 'package-lock.json', 'scripts/prepare.mjs'].map((name) => join(root, name));
  const wanted = digest(
    [...SOURCE_FOLDERS.flatMap((folder) => sourceFiles(join(root, folder))), ...beside].flatMap((file) => [
      relative(root, file),
      readFileSync(file),
    ]),
  );
  if (readStamp(BUILD_STAMP) === wanted) return;
  if (!existsSync(BUILD_STAMP)) console.error('Building ...');
  rmSync(BUILD_STAMP, { force: true });
  run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '--build', root]);
  await bundle();
  mkdirSync(dirname(BUILD_STAMP), { recursive: true });
  writeFileSync(BUILD_STAMP, wanted);
}

/**
 * The command line as few files: to find, read and link some five hundred took half of its start. What is compiled for
 * one machine stays outside. `dist/cli` is the same program, file by file.
 */
async function bundle() {
  // The other way leaves a process behind, which would stay for as long as the service.
  const { buildSync } = await import('esbuild');
  const outdir = join(root, 'dist', 'postern');
  rmSync(outdir, { recursive: true, force: true });
  buildSync({
    entryPoints: ['bin', 'main'].map((name) => join(root, 'dist', 'cli', `${name}.js`)),
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: `node${oldestNode()}`,
    external: ['better-sqlite3', 'node-llama-cpp', '@napi-rs/keyring'],
    // Packages in the older form ask for it.
    banner: { js: "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);" },
    logLevel: 'warning',
  });
}

/** The oldest Node that `engines` in package.json accepts. with-node refuses others. */
function oldestNode() {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).engines.node.replace('>=', '');
}

function sourceFiles(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.ts$|^tsconfig\.json$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}

function digest(parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(String(part.length)).update(part);
  return hash.digest('hex');
}

function readStamp(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    // stdout belongs to the program that the caller starts next; `npm start -- status --json` must stay parseable.
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (status === 0) return;
  console.error(`\n${command} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}.`);
  process.exit(1);
}
