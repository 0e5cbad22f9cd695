// `npm test [-- vitest arguments]`: every check there is, cheapest first, and all of them even when one fails, so
// that one run tells everything. With arguments only the tests they name run:  npm test -- test/gateway
//
//   THOROUGH=1   long counts (fuzzing, bit flips, kills) in full instead of sampled
//   SEED=n       replay the sample of an earlier run; each run prints the seed it used
//   CI=true      a check whose Debian package is missing fails instead of saying so
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install } from './install.mjs';
import { build, root } from './prepare.mjs';

install('development');
await build();

const only = process.argv.slice(2);
const bin = (name) => join(root, 'node_modules', '.bin', name);
const scratch = mkdtempSync(join(tmpdir(), 'postern-test-'));
const report = join(scratch, 'report.json');
const seed = process.env.SEED ?? String(randomInt(2 ** 31));
const environment = { ...process.env, SEED: seed, NO_COLOR: process.env.CI ? '1' : (process.env.NO_COLOR ?? '') };

const house = [
  ['types', process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '--build', 'test', 'bench']],
  ['format', bin('prettier'), ['--check', '--log-level', 'warn', '.']],
  ['lint', bin('oxlint'), ['--type-aware', '--deny-warnings', '--quiet']],
  ['unused code', bin('knip'), ['--no-progress']],
];
const tests = [
  'tests',
  bin('vitest'),
  ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...only],
];

console.log(`seed ${seed}${process.env.THOROUGH ? ', thorough' : ''}`);
const failed = [];
let checksPassed = 0;
for (const [name, command, args] of only.length > 0 ? [tests] : [...house, tests]) {
  console.log(`\n== ${String(name)}`);
  const { status } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], env: environment });
  if (status !== 0) failed.push(name);
  else if (name !== 'tests') checksPassed += 1;
}

const counts = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : { numPassedTests: 0, numFailedTests: 1 };
rmSync(scratch, { recursive: true, force: true });
const failedChecks = failed.filter((name) => name !== 'tests').length;
// A suite that could not even be loaded counts no failed test; it must not read as a clean run.
const failedTests = Math.max(counts.numFailedTests, failed.includes('tests') ? 1 : 0);
const skipped = (counts.numPendingTests ?? 0) + (counts.numTodoTests ?? 0);
console.log(failed.length > 0 ? `\nfailed: ${failed.join(', ')} (SEED=${seed} repeats this run)` : '');
console.log(
  `${counts.numPassedTests + checksPassed} passed, ${failedTests + failedChecks} failed` +
    (skipped > 0 ? `, ${skipped} skipped` : ''),
);
process.exit(failed.length > 0 ? 1 : 0);
