// fetch-node.mjs FOLDER SITUATION: what with-node calls when the Node of this machine is too old. Fetches the Node that
// pinned-node.json names for this platform into FOLDER, which is there as a whole or not at all. Runs under Node 20.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { npm } from './npm.mjs';
import { inScratchFolder } from './scratch.mjs';

/**
 * npm itself compares what it downloads with the hash in a lock file, and refuses it if the registry names another.
 *
 * @param {{ package: string, version: string, integrity: string }} release
 * @throws {Error} whose message says what happened
 */
function fetchNode(release, folder) {
  inScratchFolder(dirname(folder), (scratch) => {
    download(release, scratch);
    const fetched = join(scratch, 'node_modules', release.package);
    assertRuns(join(fetched, 'bin', 'node'), release.version);
    moveTo(folder, fetched);
  });
}

function download({ package: name, version, integrity }, scratch) {
  const manifest = { name: 'fetched-node', version: '0.0.0', dependencies: { [name]: version } };
  const packages = { '': manifest, [`node_modules/${name}`]: { version, integrity } };
  writeFileSync(join(scratch, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(scratch, 'package-lock.json'), JSON.stringify({ ...manifest, lockfileVersion: 3, packages }));
  const patience = ['--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=5000'];
  const quiet = ['--loglevel=error', '--no-audit', '--no-fund', '--no-update-notifier'];
  const { status, error } = npm(['ci', '--prefix', scratch, '--ignore-scripts', ...patience, ...quiet], {
    cwd: scratch,
    // Standard input and output are the program's that is to run.
    stdio: ['ignore', 'ignore', 2],
  });
  if (status !== 0)
    throw new Error(error ? `npm does not start (${error.message})` : 'npm could not fetch it (see above)');
}

function assertRuns(node, version) {
  const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
  if (stdout?.trim() !== `v${version}`) throw new Error('what npm fetched does not run on this machine');
}

/** Somebody else may have been first, which is as good. */
function moveTo(folder, fetched) {
  try {
    renameSync(fetched, folder);
  } catch (error) {
    if (!existsSync(join(folder, 'bin'))) throw error;
  }
}

function main([folder, situation]) {
  const platform = `${process.platform}-${process.arch}`;
  const release = JSON.parse(readFileSync(new URL('pinned-node.json', import.meta.url), 'utf8'))[platform];
  if (!release) return fail(`${situation} There is none to fetch for ${platform}: install Node 24.`);
  const remedy = 'install Node 24, or set POSTERN_NODE to the path of one';
  console.error(
    `${situation} Fetching Node ${release.version} through npm into .node/, once (45 MB). To avoid that, ${remedy}.`,
  );
  try {
    fetchNode(release, folder);
  } catch (error) {
    fail(`Node ${release.version} was not fetched: ${error.message}. Try again with a network, or ${remedy}.`);
  }
}

function fail(message) {
  console.error(message);
  process.exitCode = 1;
}

main(process.argv.slice(2));
