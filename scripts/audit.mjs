// `npm run audit [-- path ...]`: runs the attacks in test/attacks and prints what held, claim by claim, as Markdown on
// standard output. Progress goes to standard error. THOROUGH and SEED mean what they mean to `npm test`.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { randomInt } from 'node:crypto';
import { install } from './install.mjs';
import { build, root } from './prepare.mjs';

install('development');
await build();

const paths = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'postern-audit-'));
const output = join(scratch, 'results.json');
const seed = process.env.SEED ?? String(randomInt(2 ** 31));
const { status } = spawnSync(
  join(root, 'node_modules', '.bin', 'vitest'),
  [
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${output}`,
    ...(paths.length > 0 ? paths : ['test/attacks']),
  ],
  { cwd: root, stdio: ['ignore', 2, 2], env: { ...process.env, SEED: seed } },
);
const results = existsSync(output) ? JSON.parse(readFileSync(output, 'utf8')).testResults : [];
rmSync(scratch, { recursive: true, force: true });
console.log(report(results));
process.exit(status === 0 && results.length > 0 ? 0 : 1);

function report(files) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const claims = files.flatMap((file) => file.assertionResults);
  const count = (wanted) => claims.filter(({ status: is }) => is === wanted).length;
  const skipped = claims.length - count('passed') - count('failed');
  const counts = `${count('passed')} held, ${count('failed')} did not${skipped > 0 ? `, ${skipped} not run` : ''}`;
  return [
    `# Attacks on Postern ${version}`,
    `${new Date().toISOString().slice(0, 10)}, commit ${commit()}, Node ${process.versions.node}, ${process.platform} ${process.arch}, seed ${seed}${process.env.THOROUGH ? ', thorough' : ''}: ${counts}. Each line is a claim that a test tried to break against the real service. docs/threat-model.md says who attacks, and what is not covered.`,
    ...files.toSorted((a, b) => a.name.localeCompare(b.name)).map(section),
  ].join('\n\n');
}

function section(file) {
  const title = `## ${basename(file.name, '.test.ts').replaceAll('-', ' ')}`;
  if (file.assertionResults.length === 0) return `${title}\n\n- **did not run**: ${file.message.split('\n')[0]}`;
  const byAttack = Map.groupBy(file.assertionResults, ({ ancestorTitles }) => ancestorTitles.join(', '));
  const lists = [...byAttack].map(([attack, claims]) =>
    [attack, claims.map(line).join('\n')].filter(Boolean).join('\n\n'),
  );
  return [title, ...lists].join('\n\n');
}

function line({ title, status: is }) {
  if (is === 'passed') return `- held: ${title}`;
  return is === 'failed' ? `- **did not hold**: ${title}` : `- not run: ${title}`;
}

function commit() {
  const { stdout } = spawnSync('git', ['describe', '--always', '--dirty'], { cwd: root, encoding: 'utf8' });
  return stdout?.trim() || 'unknown';
}
