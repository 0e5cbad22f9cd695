// How the front doors call npm. It reads the settings of the machine (a registry, a certificate, a proxy) from a file below
// its prefix, and would find none below a folder of ours: so it is told where that file is.
import { spawnSync } from 'node:child_process';

const shell = process.platform === 'win32';

/** @returns what `spawnSync` does */
export function npm(args, options) {
  return spawnSync('npm', args, { ...options, shell, env: { ...process.env, ...machineSettings() } });
}

/** npm has said it already to what it runs itself. */
function machineSettings() {
  if (process.env.npm_config_globalconfig) return {};
  const { stdout } = spawnSync('npm', ['config', 'get', 'globalconfig', '--loglevel=error'], {
    encoding: 'utf8',
    shell,
  });
  const path = stdout?.trim();
  return path ? { npm_config_globalconfig: path } : {};
}
