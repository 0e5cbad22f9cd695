/** `postern completion`, as the shells themselves take it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commandNames } from '../../cli/commands.ts';
import { has, shells } from '../support/requirements.ts';
import { runCli } from '../support/server.ts';

type Shell = 'bash' | 'zsh' | 'fish';

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postern-completion-'));
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await runCli(['completion', shell], { SVC_HOME: join(folder, 'home') });
    expect(code).toBe(0);
    writeFileSync(join(folder, shell), stdout);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What each shell is told to do to complete a line whose last word is begun, and to print what it found. */
const COMPLETE: Readonly<Record<Shell, string>> = {
  bash: `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _postern; printf '%s\\n' "\${COMPREPLY[@]}"`,
  // The function is called as the completion system calls it; only that finds what begins like the word.
  zsh: `compdef() { :; }; _files() { :; }
    _describe() { local one; for one in "\${(@P)2}"; do [[ $one == \${words[CURRENT]}* ]] && print -r -- "\${one%%:*}"; done; }
    source "$0"; words=("$@"); CURRENT=$#; _postern`,
  fish: `source $argv[1]; complete -C (string join -- ' ' $argv[2..])`,
};

function complete(shell: Shell, line: string): readonly string[] {
  const words = line.split(' ');
  const safely = { bash: ['--norc', '-c'], zsh: ['-f', '-c'], fish: ['--no-config', '-c'] }[shell];
  const { stdout, stderr } = spawnSync(shell, [...safely, COMPLETE[shell], join(folder, shell), ...words], {
    encoding: 'utf8',
    cwd: folder,
    env: { ...process.env, HOME: folder },
  });
  expect(stderr).toBe('');
  const found = stdout.split('\n').map((one) => one.split('\t')[0]!);
  return found.filter((one) => one !== '').toSorted();
}

describe.runIf(has(shells)).each(['bash', 'zsh', 'fish'] as const)('%s', (shell) => {
  test('completes every command', () => {
    expect(complete(shell, 'postern ').filter((word) => !word.startsWith('-'))).toEqual(
      [...commandNames, 'help'].toSorted(),
    );
    expect(complete(shell, 'postern se')).toEqual(['serve', 'settings']);
  });

  test('completes the verbs of a noun, and the options of each', () => {
    expect(complete(shell, 'postern keys ').filter((word) => !word.startsWith('-'))).toEqual([
      'create',
      'inspect',
      'list',
      'revoke',
    ]);
    expect(complete(shell, 'postern keys create --')).toEqual(['--agent', '--expires', '--help', '--json', '--label']);
    expect(complete(shell, 'postern keys revoke --')).toEqual(['--all', '--help', '--json']);
    expect(complete(shell, 'postern serve --expose --mod')).toEqual(['--models-dir']);
  });

  test('completes the names of settings', () => {
    expect(complete(shell, 'postern settings set server.')).toEqual([
      'server.allowedOrigins',
      'server.expose',
      'server.hostnames',
      'server.port',
    ]);
    expect(complete(shell, 'postern settings unset log.d')).toEqual(['log.days']);
  });
});

test('another shell is misuse, and nothing is printed', async () => {
  for (const args of [['completion'], ['completion', 'tcsh']])
    expect(await runCli(args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('"bash"') });
});
