/** npm as the front doors call it, under a Node that they fetched. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');

/** Says where it would look for settings; asked for anything else, where it was told to. */
const npmScript = (globalconfig: string) => `#!/bin/sh
[ "$1" = config ] && echo ${globalconfig} && exit
printf %s "$npm_config_globalconfig"
`;

test.runIf(process.platform !== 'win32')(
  'it reads the settings of the machine, and not what lies beside that Node',
  () => {
    const project = mkdtempSync(join(tmpdir(), 'postern npm '));
    const folders = { fetched: join(project, '.node', 'here', 'bin'), machine: join(project, 'machine') };
    mkdirSync(join(project, 'scripts'));
    cpSync(join(ROOT, 'scripts/npm.mjs'), join(project, 'scripts/npm.mjs'));
    for (const [name, folder] of Object.entries(folders)) {
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'npm'), npmScript(`/${name}/npmrc`), { mode: 0o755 });
    }
    const program = "import { npm } from './scripts/npm.mjs'; npm(['install'], { stdio: 'inherit' });";
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: project,
      encoding: 'utf8',
      env: { PATH: `${folders.fetched}:${folders.machine}:/usr/bin:/bin` },
    });
    expect(stdout).toBe('/machine/npmrc');
    rmSync(project, { recursive: true });
  },
);
