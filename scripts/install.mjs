// Installs what the lock file says, less what this machine can't use. The new folder is made beside the old one and
// takes its place when it is whole, so that a start that is killed, or two at once, leave one that works.
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isUsableEngine } from './engine-packages.mjs';
import { npm } from './npm.mjs';
import { assertPrebuilt } from './prebuilt.mjs';
import { inScratchFolder } from './scratch.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const INSTALLED = join(root, 'node_modules');
/** Says what is installed, and for what: `<digest> serving` or `<digest> development`. */
const STAMP = '.postern-install';

/**
 * Prints only when it works.
 *
 * @param {'serving' | 'development'} purpose development needs more, and gets it again once it was asked for
 */
export function install(purpose) {
  const lock = usableLock();
  const digest = createHash('sha256').update(`${process.platform} ${process.arch}`).update(lock).digest('hex');
  if (isInstalled(digest, purpose)) return;
  console.error('Installing dependencies (the first time, up to a minute) ...');
  const scope = readStamp().purpose === 'development' ? 'development' : purpose;
  try {
    inScratchFolder(join(root, '.cache'), (scratch) => {
      copyFileSync(join(root, 'package.json'), join(scratch, 'package.json'));
      writeFileSync(join(scratch, 'package-lock.json'), lock);
      download(scratch, scope);
      assertPrebuilt(join(scratch, 'node_modules'));
      writeFileSync(join(scratch, 'node_modules', STAMP), `${digest} ${scope}`);
      // Another start may have been first, which is as good.
      if (!isInstalled(digest, scope)) replaceInstalled(scratch);
    });
  } catch (error) {
    console.error(`\nThe dependencies were not installed. ${error.message}`);
    process.exit(1);
  }
}

function readStamp() {
  const path = join(INSTALLED, STAMP);
  const [digest, purpose] = existsSync(path) ? readFileSync(path, 'utf8').split(' ') : [];
  return { digest, purpose };
}

function isInstalled(digest, purpose) {
  const installed = readStamp();
  return installed.digest === digest && (installed.purpose === 'development' || installed.purpose === purpose);
}

/** The lock file, in which an engine that this machine can't use is for no system at all. */
function usableLock() {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const engines = lock.packages['node_modules/node-llama-cpp'].optionalDependencies;
  for (const [name, version] of Object.entries(engines))
    if (!isUsableEngine(name, process))
      lock.packages[`node_modules/${name}`] = { version, optional: true, os: ['none'] };
  return JSON.stringify(lock);
}

/**
 * Not by `npm ci`: that refuses a lock file without the binaries of every platform, and not every registry has them
 * all. With `--no-save` the lock file decides just the same. Nothing that is installed runs anything: every native part
 * comes prebuilt, and npm would compile one that has a binding.gyp.
 */
function download(folder, scope) {
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
  const omitted = scope === 'serving' ? ['--omit=dev'] : [];
  const args = ['install', '--prefix', folder, '--no-save', '--ignore-scripts', ...omitted, ...quiet];
  // Standard output belongs to the program that starts next: `npm start -- status --json` must stay parseable.
  const { status, error } = npm(args, { cwd: folder, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw error ?? new Error('npm failed, as it says above.');
}

function replaceInstalled(scratch) {
  if (existsSync(INSTALLED)) renameSync(INSTALLED, join(scratch, 'replaced'));
  renameSync(join(scratch, 'node_modules'), INSTALLED);
}
