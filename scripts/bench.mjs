// `npm run bench [-- name ...]`: builds, then runs every benchmark, or those named: npm run bench -- wire
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { install } from './install.mjs';
import { build, root } from './prepare.mjs';

install('development');
await build();

const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
if (spawnSync(process.execPath, [tsc, '--build', 'bench'], { cwd: root, stdio: 'inherit' }).status !== 0)
  process.exit(1);

const names = process.argv.slice(2);
const all = readdirSync(join(root, 'bench'))
  .filter((file) => file.endsWith('.bench.ts'))
  .map((file) => file.slice(0, -'.bench.ts'.length));
const unknown = names.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  console.error(`There is no benchmark ${unknown.join(', ')}. There are: ${all.join(', ')}.`);
  process.exit(2);
}
console.log(
  `${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, ${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
);
let failed = false;
for (const name of names.length > 0 ? names : all) {
  console.log(`\n== ${name}`);
  const { status } = spawnSync(process.execPath, [join(root, 'dist', 'bench', `${name}.bench.js`)], {
    cwd: root,
    stdio: 'inherit',
  });
  failed ||= status !== 0;
}
process.exit(failed ? 1 : 0);
