// How the front doors call npm. It reads the settings of the machine (a registry, a certificate, a proxy) from a file below
// its prefix, and would find none below a folder of ours: so it is told where that file is.
import { spawnSync } from 'node:child_process';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const FETCHED = join(dirname(dirname(fileURLToPath(import.meta.url))), '.node');
const shell = process.platform === 'win32';

/** @returns what `spawnSync` does */
export function npm(args, options) {
  return spawnSync('npm', args, { ...options, shell, env: { ...process.env, ...machineSettings() } });
}

/** npm has said it already to what it runs itself. */
function machineSettings() {
  if (process.env.npm_config_globalconfig) return {};
  const asked = ['config', 'get', 'globalconfig', '--loglevel=error'];
  const { stdout } = spawnSync('npm', asked, { encoding: 'utf8', shell, env: { ...process.env, PATH: machinePath() } });
  const found = stdout?.trim();
  return found ? { npm_config_globalconfig: found } : {};
}

/** npm's prefix is its Node's: under one that was fetched, it would look beside that. */
function machinePath() {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.filter((folder) => !resolve(folder).startsWith(FETCHED)).join(delimiter);
}
