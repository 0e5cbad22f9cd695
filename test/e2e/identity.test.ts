/** `postern identity` and `postern audit` as a user runs them. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { has } from '../support/requirements.ts';
import { cliPath, runCli, startServer } from '../support/server.ts';

/** Of BIP-39's own list: 0x7f, 32 times. */
const WORDS =
  'legal winner thank year wave sausage worth useful legal winner thank year wave sausage worth useful legal winner ' +
  'thank year wave sausage worth title';
const OTHER_WORDS = `${'letter advice cage absurd amount doctor acoustic avoid '.repeat(2)}letter advice cage absurd amount doctor acoustic bless`;

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-identity-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const cli = (...args: string[]) => runCli(args, { SVC_HOME: home });
const restore = (words: string, ...flags: string[]) =>
  runCli(['identity', 'restore', '-', ...flags], { SVC_HOME: home }, words);
const show = async () => JSON.parse((await cli('identity', 'show', '--json')).stdout) as Record<string, string>;
const files = async () => (await readdir(home)).toSorted();
const auditKinds = async () =>
  (JSON.parse((await cli('audit', 'list', '--json')).stdout) as { kind: string }[]).map(({ kind }) => kind);

describe('without an identity', () => {
  test.each([
    ['identity', 'show'],
    ['identity', 'backup', '--yes'],
    ['audit', 'verify'],
  ])('%s %s says how one comes to be, and makes nothing', async (...args) => {
    const answer = await cli(...args);
    expect(answer).toMatchObject({ code: 1, stdout: '' });
    expect(answer.stderr).toMatch(/no identity yet.*"postern serve" makes one.*"postern identity restore -"/);
    expect(await files()).toEqual([]);
  });

  test('that was lost, "identity show" says that too, and the secrets are found again', async () => {
    await cli('keys', 'create');
    const before = await show();
    await rm(join(home, 'identity.json'));
    expect((await cli('identity', 'show')).stderr).toMatch(/lost its identity\.json.*finds the secrets again/);
    await cli('keys', 'create');
    expect(await show()).toEqual(before);
  });

  test('the log is empty', async () => {
    expect(await cli('audit', 'list')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'The audit log has no entries yet.\n',
    });
    expect((await cli('audit', 'list', '--json')).stdout).toBe('[]\n');
    expect(await files()).toEqual([]);
  });
});

describe('backup and restore', () => {
  test('the words go in and come out, and the address with them', async () => {
    const restored = await restore(WORDS);
    expect(restored).toMatchObject({ code: 0, stderr: expect.stringMatching(/not bring back pairings/) });
    expect(restored.stdout).toBe(`${(await show())['address']}\n`);
    const { address, store, gateway_id: gatewayId } = await show();
    expect(address).toMatch(/^0x[0-9a-fA-F]{40}$/);
    expect(store).toBe('vault');
    expect(gatewayId).toMatch(/^([0-9a-f]{4} ){7}[0-9a-f]{4}$/);
    const text = (await cli('identity', 'show')).stdout;
    for (const part of [address, gatewayId, 'vault.json']) expect(text).toContain(part);

    const backup = await cli('identity', 'backup', '--yes');
    expect(backup).toMatchObject({ code: 0, stdout: `${WORDS}\n` });
    expect(backup.stderr).toMatch(/Whoever reads them/);
    expect(backup.stderr).toMatch(/do not bring back pairings/);
    expect(backup.stderr).not.toContain('sausage');
    expect(await auditKinds()).toEqual(['identity_restored']);
  });

  test('is the same address in another folder, with another gateway key', async () => {
    await restore(WORDS);
    const first = await show();
    await rm(home, { recursive: true });
    await restore(WORDS.toUpperCase().replaceAll(' ', '\n'));
    const second = await show();
    expect(second['address']).toBe(first['address']);
    expect(second['gateway_id']).not.toBe(first['gateway_id']);
  });

  test('what is written is the owner’s alone, and holds no secret', async () => {
    await restore(WORDS);
    for (const file of await files()) {
      expect(((await stat(join(home, file))).mode & 0o777).toString(8)).toBe('600');
      const content = await readFile(join(home, file), 'latin1');
      for (const form of ['latin1', 'hex', 'base64url'] as const) {
        expect(content).not.toContain(Buffer.alloc(32, 0x7f).toString(form));
      }
      expect(content).not.toContain('sausage');
    }
  });

  test('the words are printed to a pipe only for one who says so', async () => {
    await restore(WORDS);
    const answer = await cli('identity', 'backup');
    expect(answer).toMatchObject({ code: 2, stdout: '' });
    expect(answer.stderr).toContain('--yes');
    expect(answer.stderr).not.toContain('sausage');
  });

  test('words that are none change nothing, and are not said again', async () => {
    for (const words of ['', 'legal', WORDS.replace('title', 'winner'), `${WORDS} legal`, 'x'.repeat(1_000_000)]) {
      const answer = await restore(words);
      expect(answer).toMatchObject({ code: 1, stdout: '' });
      expect(answer.stderr).not.toMatch(/legal|winner|xx/);
    }
    expect(await files()).toEqual([]);
  });

  test('words on the command line are refused, and not said again', async () => {
    for (const args of [WORDS.split(' '), [WORDS], ['-', 'legal'], []]) {
      const answer = await cli('identity', 'restore', ...args);
      expect(answer).toMatchObject({ code: 2, stdout: '' });
      expect(answer.stderr).toContain('standard input');
      expect(answer.stderr).not.toMatch(/legal|winner/);
    }
    expect(await files()).toEqual([]);
  });

  test('another identity is replaced only by one who says so', async () => {
    await restore(WORDS);
    const before = await show();
    const refused = await restore(OTHER_WORDS);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/nothing was changed.*--replace/);
    expect(await show()).toEqual(before);
    expect(await restore(OTHER_WORDS, '--replace')).toMatchObject({ code: 0 });
    expect((await show())['address']).not.toBe(before['address']);
    expect(await restore(OTHER_WORDS)).toMatchObject({ code: 0 });
    expect(await cli('audit', 'verify')).toMatchObject({ code: 0, stdout: 'The audit log is intact (3 entries).\n' });
  });

  test('while the service runs, the words can be read and not replaced', async () => {
    await restore(WORDS);
    const server = await startServer({ home });
    try {
      expect((await cli('identity', 'backup', '--yes')).stdout).toBe(`${WORDS}\n`);
      expect(await restore(OTHER_WORDS, '--replace')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('postern stop'),
      });
      expect(await cli('audit', 'verify')).toMatchObject({ code: 0 });
    } finally {
      await server.stop();
    }
  });

  test('sealed with a passphrase, it takes the passphrase', async () => {
    const sealed = { SVC_HOME: home, SVC_VAULT_PASSPHRASE: 'correct horse' };
    expect(await runCli(['identity', 'restore', '-'], sealed, WORDS)).toMatchObject({ code: 0 });
    expect(await files()).not.toContain('vault.key');
    expect((await runCli(['identity', 'backup', '--yes'], sealed)).stdout).toBe(`${WORDS}\n`);
    for (const [passphrase, words] of [
      ['', 'Give it in SVC_VAULT_PASSPHRASE'],
      ['battery', 'Give the right one'],
    ] as const) {
      const answer = await runCli(['identity', 'backup', '--yes'], { ...sealed, SVC_VAULT_PASSPHRASE: passphrase });
      expect(answer).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(words) });
      expect(answer.stderr.trim().split('\n')).toHaveLength(1);
    }
  });
});

const terminal = {
  isMet: process.platform === 'linux' && spawnSync('which', ['script']).status === 0,
  remedy: 'A terminal needs Linux and the program script (Debian package bsdutils).',
};

describe.runIf(has(terminal))('at a terminal', () => {
  const at = (command: string, input = '') =>
    spawnSync('script', ['-qec', `${process.execPath} ${cliPath} ${command}`, '/dev/null'], {
      encoding: 'utf8',
      input,
      env: { ...process.env, SVC_HOME: home, SVC_IDENTITY_STORE: 'vault' },
    });

  test('the words are typed in one line, and printed without being asked twice', () => {
    const restored = at('identity restore -', `${WORDS}\n`);
    expect(restored.status).toBe(0);
    expect(restored.stdout).toContain('in one line:');
    const backup = at('identity backup');
    expect(backup.status).toBe(0);
    expect(backup.stdout).toContain(WORDS);
  });
});

describe('the audit log', () => {
  const change = (sql: string): void => {
    const database = new Sqlite(join(home, 'state.db'));
    database.exec(`DROP TRIGGER audit_log_rows_hold; DROP TRIGGER audit_log_rows_stay; ${sql}`);
    database.close();
  };

  test('is listed, newest first, and found whole', async () => {
    for (const words of [WORDS, WORDS, OTHER_WORDS]) await restore(words, '--replace');
    const { stdout } = await cli('audit', 'list', '--limit', '2');
    expect(stdout).toMatch(
      /^ {5}3 {2}\d{4}-\d\d-\d\dT[\d:.]+Z {2}identity_restored {2}address="0x\w{40}"\n {5}2 .*\n$/,
    );
    expect(await cli('audit', 'verify')).toMatchObject({ code: 0, stdout: 'The audit log is intact (3 entries).\n' });
    expect(JSON.parse((await cli('audit', 'verify', '--json')).stdout)).toEqual({ intact: true, count: 3 });
  });

  test('that was changed is said to be, and where', async () => {
    for (const words of [WORDS, WORDS, WORDS]) await restore(words);
    change('UPDATE audit_log SET at_ms = at_ms + 1 WHERE seq = 2');
    const answer = await cli('audit', 'verify');
    expect(answer).toMatchObject({ code: 1, stdout: expect.stringContaining('entry 2: it is not what was written') });
    expect(JSON.parse((await cli('audit', 'verify', '--json')).stdout)).toEqual({
      intact: false,
      seq: 2,
      fault: 'changed',
    });
  });

  test('with its end cut off is said to miss it', async () => {
    for (const words of [WORDS, WORDS, WORDS]) await restore(words);
    change('DELETE FROM audit_log WHERE seq = 3');
    expect(await cli('audit', 'verify')).toMatchObject({
      code: 1,
      stdout: 'The audit log is damaged at entry 3: it is missing.\n',
    });
  });

  test('that holds something else prints it as what it is', async () => {
    await restore(WORDS);
    change(`UPDATE audit_log SET entry = '\u001b[2Jboo', at_ms = 9223372036854775807`);
    const { stdout, code } = await cli('audit', 'list');
    expect(code).toBe(0);
    expect(stdout).toContain('no time  not an entry of this log');
    expect(stdout).not.toContain('\u001b');
  });
});

test.each([
  [['identity', 'frobnicate'], 'say "show"'],
  [['identity', 'show', 'more'], 'too many'],
  [['identity', 'show', '--frobnicate'], '--frobnicate'],
  [['audit', 'frobnicate'], 'say "list"'],
  [['audit', 'list', '--limit', 'x'], '--limit'],
  [['audit', 'list', '--limit', '0'], '--limit'],
  [['audit', 'verify', 'more'], 'too many'],
])('%j is a mistake that is explained', async (args, words) => {
  expect(await cli(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(words) });
});

test('a setting that contradicts the folder, and a damaged record, are explained', async () => {
  await restore(WORDS);
  const other = await runCli(['identity', 'show'], { SVC_HOME: home, SVC_IDENTITY_STORE: 'keyring' });
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('in the vault') });
  const unknown = await runCli(['identity', 'show'], { SVC_HOME: home, SVC_IDENTITY_STORE: 'paper' });
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('identity.store') });
  await writeFile(join(home, 'identity.json'), '{');
  expect(await cli('identity', 'show')).toMatchObject({ code: 1, stderr: expect.stringContaining('identity.json') });
});
