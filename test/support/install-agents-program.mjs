// Installs the packages of `test/agents`, in the versions and with the contents that its lock file has, into a new folder.
import { cpSync, existsSync, renameSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { npm } from '../../scripts/npm.mjs';
import { inScratchFolder } from '../../scripts/scratch.mjs';

/** The other install scripts build what the agents can do without. */
const NEED_THEIR_SCRIPTS = ['@anthropic-ai/claude-code', 'opencode-ai'];

const STEPS = [
  // `npm ci` would refuse the lock file: it lacks packages for other systems, which not every registry has.
  ['install', '--no-save', '--ignore-scripts'],
  ['rebuild', ...NEED_THEIR_SCRIPTS],
];

const folder = process.argv[2];
inScratchFolder(dirname(folder), (scratch) => {
  cpSync(fileURLToPath(new URL('../agents', import.meta.url)), scratch, { recursive: true });
  for (const step of STEPS) {
    const { status } = npm([...step, '--loglevel=error'], { cwd: scratch, stdio: 'inherit' });
    if (status !== 0) process.exit(1);
  }
  // Another run may have been first, which is as good.
  if (!existsSync(folder)) renameSync(scratch, folder);
});
