/** `SVC_HOME` as accidents, other users and newer programs leave it: words and exit code 1, never a stack trace. */
import { spawnSync } from 'node:child_process';
import { chmod, chown, lchown, mkdir, mkdtemp, open, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cliPath, runCli, startServer, type CliResult } from '../support/server.ts';

/** Debian's `nobody`. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

let folder: string;
let home: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-damaged-'));
  home = join(folder, 'home');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const cli = (...args: string[]) => runCli(args, { SVC_HOME: home });
const serve = () => cli('serve', '--port', '0');
const madeHome = async () => expect(await cli('keys', 'create', '--label', 'first')).toMatchObject({ code: 0 });
const modeOf = async (name: string) => ((await stat(join(home, name))).mode & 0o777).toString(8);

/** One sentence or more with the place and the remedy, and nothing of the program's inside. */
function expectWords({ code, stderr }: CliResult, ...words: readonly string[]): void {
  for (const word of words) expect(stderr).toContain(word);
  expect(stderr).not.toMatch(/^\s+at |node:internal|\.js:\d+/m);
  expect(code).toBe(1);
}

async function overwrite(path: string, position: number, bytes: number): Promise<void> {
  const file = await open(path, 'r+');
  await file.write(Buffer.alloc(bytes, 0xa5), 0, bytes, position);
  await file.close();
}

async function whileWritable(path: string, run: () => Promise<void>): Promise<void> {
  const { mode } = await stat(path);
  await chmod(path, mode | 0o020);
  await run();
  await chmod(path, mode);
}

describe('a damaged state.db is named, with what to do, by whatever reads it', () => {
  const damages: readonly (readonly [string, (path: string) => Promise<unknown>])[] = [
    ['cut short', (path) => truncate(path, 5000)],
    ['without its header', (path) => overwrite(path, 0, 100)],
    ['with other pages than were written', (path) => overwrite(path, 4096, 3 * 4096)],
  ];
  test.each(damages)('%s', async (_, damage) => {
    await madeHome();
    await damage(join(home, 'state.db'));
    for (const command of [['serve', '--port', '0'], ['keys', 'list'], ['devices'], ['logs'], ['audit', 'list']])
      expectWords(await cli(...command), `${home}/state.db is damaged`, 'Put back a copy of it; or move it away');
  });
});

test('what a newer version has written is refused before anything is changed', async () => {
  await madeHome();
  const database = new Database(join(home, 'state.db'));
  database.exec("UPDATE schema_versions SET version = 99 WHERE module = 'devices'");
  database.close();
  for (const command of [['serve', '--port', '0'], ['keys', 'create'], ['devices'], ['logs'], ['audit', 'list']])
    expectWords(await cli(...command), 'newer version of Postern (devices 99)', 'Update Postern');
});

describe('what is not what it should be', () => {
  test('a file where the folder should be', async () => {
    await writeFile(home, 'not a folder');
    for (const command of [
      ['serve', '--port', '0'],
      ['keys', 'create'],
      ['keys', 'list'],
      ['settings', 'list'],
    ])
      expectWords(await cli(...command), `${home} is not a folder`, 'set SVC_HOME');
  });

  test('a folder where state.db should be', async () => {
    await mkdir(join(home, 'state.db'), { recursive: true });
    expectWords(await serve(), `${home}/state.db can't be opened`);
  });

  test('settings that are no JSON', async () => {
    await mkdir(home);
    await writeFile(join(home, 'settings.json'), '{ half');
    expectWords(await serve(), `${home}/settings.json`, 'Mend it, or delete it');
  });

  test('an identity.json that is none', async () => {
    await madeHome();
    await writeFile(join(home, 'identity.json'), '{}');
    expectWords(await cli('keys', 'create'), `${home}/identity.json is damaged`);
  });
});

// With fewer, Node itself does not start; with 28 the service began, and could neither serve nor end.
test.each([24, 26, 27, 28, 29, 32, 48, 64])('a program that may open only %i files says so', (files) => {
  const { status, stderr } = spawnSync(
    'bash',
    ['-c', `ulimit -n ${files}; exec "$@"`, 'bash', process.execPath, cliPath, 'serve', '--port', '0'],
    { env: { ...process.env, SVC_HOME: home, SVC_IDENTITY_STORE: 'vault' }, encoding: 'utf8', timeout: 100_000 },
  );
  expectWords({ code: status, stdout: '', stderr }, 'ulimit -n');
});

describe('a folder that others may use', () => {
  test('is taken from them, with what lies in it, and that is said', async () => {
    await madeHome();
    await chmod(home, 0o755);
    await chmod(join(home, 'state.db'), 0o664);
    await chmod(join(home, 'vault.key'), 0o644);
    const server = await startServer({ home });
    expect(server.log()).toContain(`Other users had access to ${home}, ${home}/vault.key, ${home}/state.db.`);
    expect(await Promise.all(['.', 'state.db', 'vault.key'].map(modeOf))).toEqual(['700', '600', '600']);
    await server.stop();
    expect((await cli('keys', 'list')).stderr).toBe('');
  });

  test('has no mode changed of what a link leads to', async () => {
    const target = `${home}-elsewhere`;
    await mkdir(home, { mode: 0o755 });
    await writeFile(target, '{}');
    await chmod(target, 0o644);
    await symlink(target, join(home, 'settings.json'));
    expect((await cli('settings', 'list')).code).toBe(0);
    expect(await modeOf('.')).toBe('700');
    expect((await stat(target)).mode & 0o777).toBe(0o644);
    await rm(target);
  });

  test('is refused with a link in it, which anyone may have put there, and left as it is', async () => {
    const target = join(folder, 'precious');
    await writeFile(target, '{}', { mode: 0o600 });
    await mkdir(home);
    await chmod(home, 0o775);
    await symlink(target, join(home, 'vault.json'));
    for (const command of [
      ['serve', '--port', '0'],
      ['keys', 'create'],
    ])
      expectWords(
        await cli(...command),
        `${home}/vault.json is a link, and others could write to ${home}`,
        'chmod go-w',
      );
    expect(await modeOf('.')).toBe('775');
    // Its owner has looked at it, as the words say.
    await chmod(home, 0o755);
    expect((await cli('settings', 'list')).code).toBe(0);
  });

  test('may hold a link to another disk, but not to where others can write, and none that leads nowhere', async () => {
    const disk = join(folder, 'disk');
    await mkdir(join(disk, 'mine'), { recursive: true, mode: 0o700 });
    await mkdir(home, { mode: 0o700 });
    await symlink(join(disk, 'mine', 'state.db'), join(home, 'state.db'));
    expectWords(await cli('keys', 'create'), `${home}/state.db is a link that leads nowhere`);
    await writeFile(join(disk, 'mine', 'state.db'), '', { mode: 0o600 });
    expect(await cli('keys', 'create')).toMatchObject({ code: 0 });
    for (const exposed of ['mine/state.db', 'mine', '.'])
      await whileWritable(resolve(disk, exposed), async () => {
        expectWords(
          await cli('keys', 'create'),
          `${home}/state.db is a link to`,
          `others can change ${resolve(disk, exposed)}`,
        );
      });
    expect(await cli('keys', 'create')).toMatchObject({ code: 0 });
  });

  test.runIf(isRoot).each([
    ['that another user made', async (link: string) => lchown(link, NOBODY, NOBODY), ''],
    ['that another user could exchange', async (link: string) => chmod(resolve(link, '..'), 0o777), '..'],
  ])('may hold no link that leads over a link %s', async (_, expose, exposed) => {
    const [between, disk] = [join(folder, 'between'), join(folder, 'disk')];
    for (const made of [between, disk, home]) await mkdir(made, { mode: 0o700 });
    await writeFile(join(disk, 'state.db'), '', { mode: 0o600 });
    await symlink('../disk/state.db', join(between, 'first'));
    await symlink('first', join(between, 'second'));
    await symlink(join(between, 'second'), join(home, 'state.db'));
    expect(await cli('keys', 'create')).toMatchObject({ code: 0 });
    await expose(join(between, 'first'));
    expectWords(
      await cli('keys', 'create'),
      `${home}/state.db is a link to ${disk}/state.db`,
      `others can change ${resolve(between, 'first', exposed)}.`,
    );
  });

  test.runIf(isRoot)('is refused where it is a link that leads over a link that another user made', async () => {
    const [first, target] = [join(folder, 'first'), join(folder, 'target')];
    await mkdir(target, { mode: 0o700 });
    await symlink('target', first);
    await symlink(first, home);
    expect(await cli('keys', 'create')).toMatchObject({ code: 0 });
    await lchown(first, NOBODY, NOBODY);
    expectWords(await serve(), `${home} is a link to ${target}, and others can change ${first}.`);
  });

  test.runIf(isRoot)('is refused with a link in it that another user made', async () => {
    await madeHome();
    await symlink(join(home, 'vault.json'), join(home, 'paired.json'));
    await lchown(join(home, 'paired.json'), NOBODY, NOBODY);
    expectWords(await serve(), `${home}/paired.json belongs to another user`);
  });

  test.runIf(isRoot)('is refused with a journal in it that another user wrote', async () => {
    await madeHome();
    await writeFile(join(home, 'state.db-journal'), '');
    await chown(join(home, 'state.db-journal'), NOBODY, NOBODY);
    expectWords(await serve(), `${home}/state.db-journal belongs to another user`);
  });

  test.runIf(isRoot)('is refused where it is another user’s, and left as it is', async () => {
    await mkdir(home, { mode: 0o755 });
    await chown(home, NOBODY, NOBODY);
    for (const command of [
      ['serve', '--port', '0'],
      ['keys', 'create'],
      ['settings', 'list'],
    ])
      expectWords(await cli(...command), `${home} belongs to another user (uid ${NOBODY})`);
    expect(await modeOf('.')).toBe('755');
  });

  test.runIf(isRoot)('is refused where a file in it is another user’s', async () => {
    await madeHome();
    await chown(join(home, 'vault.key'), NOBODY, NOBODY);
    expectWords(await serve(), `${home}/vault.key belongs to another user`);
  });

  test.runIf(isRoot)('is refused where it is a link to another user’s, or a link that another user made', async () => {
    const target = join(folder, 'target');
    await mkdir(target, { mode: 0o700 });
    await chown(target, NOBODY, NOBODY);
    await symlink(target, home);
    expectWords(await serve(), `${home} belongs to another user`);
  });

  test('is left alone where it is another program’s, and refused', async () => {
    await mkdir(home, { mode: 0o755 });
    await writeFile(join(home, 'settings.json'), '{}', { mode: 0o644 });
    await writeFile(join(home, 'passwd'), 'root', { mode: 0o644 });
    for (const command of [['status'], ['serve', '--port', '0'], ['settings', 'list']])
      expectWords(await cli(...command), home, 'files of something else', 'SVC_HOME');
    expect([await modeOf(''), await modeOf('settings.json'), await modeOf('passwd')]).toEqual(['755', '644', '644']);
    await rm(join(home, 'passwd'));
    expect(await cli('settings', 'list')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Now only you have'),
    });
  });

  test('is refused where all users share it', async () => {
    await mkdir(home);
    await chmod(home, 0o1777);
    expectWords(await serve(), `${home} is a folder that all users share`);
    expect(((await stat(home)).mode & 0o7777).toString(8)).toBe('1777');
  });
});
