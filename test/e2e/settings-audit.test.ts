/** What `postern settings` tells the audit log. */
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCli } from '../support/server.ts';

/** Of BIP-39's own list: 0x7f, 32 times. */
const WORDS =
  'legal winner thank year wave sausage worth useful legal winner thank year wave sausage worth useful legal winner ' +
  'thank year wave sausage worth title';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-settings-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const cli = (...args: string[]) => runCli(args, { SVC_HOME: home });
const makeIdentity = () => runCli(['identity', 'restore', '-'], { SVC_HOME: home }, WORDS);
const file = async () => JSON.parse(await readFile(join(home, 'settings.json'), 'utf8')) as Record<string, unknown>;
const told = async () =>
  (JSON.parse((await cli('audit', 'list', '--json')).stdout) as Record<string, unknown>[])
    .filter(({ kind }) => kind === 'setting_changed')
    .map(({ seq: _seq, at_ms: _at, kind: _kind, ...fields }) => fields);

test('a change is told by its name, never by its value', async () => {
  await makeIdentity();
  expect(await cli('settings', 'set', 'server.hostnames', 'secret-laboratory.example')).toMatchObject({ code: 0 });
  expect(await cli('settings', 'unset', 'server.hostnames')).toMatchObject({ code: 0 });
  expect(await told()).toEqual([{ name: 'server.hostnames' }, { name: 'server.hostnames' }]);
  expect((await cli('audit', 'verify')).stdout).toBe('The audit log is intact (3 entries).\n');
  for (const name of (await readdir(home)).filter((one) => one.startsWith('state.db'))) {
    expect(await readFile(join(home, name), 'latin1')).not.toContain('laboratory');
  }
});

test('what is refused, or cannot be written, is not told', async () => {
  await makeIdentity();
  expect(await cli('settings', 'set', 'server.port', '70000')).toMatchObject({ code: 1 });
  expect(await cli('settings', 'set', 'server.prot', '1')).toMatchObject({ code: 2 });
  await mkdir(join(home, 'settings.json'));
  expect(await cli('settings', 'set', 'server.port', '4001')).toMatchObject({ code: 1 });
  expect(await told()).toEqual([]);
  await rm(join(home, 'settings.json'), { recursive: true });
  expect((await cli('audit', 'verify')).stdout).toBe('The audit log is intact (1 entry).\n');
});

test('without an identity there is nothing to seal with: no entry, and no database', async () => {
  expect(await cli('settings', 'set', 'server.port', '4001')).toMatchObject({ code: 0, stderr: 'Saved.\n' });
  expect(await readdir(home)).toEqual(['settings.json']);
});

test('where the log cannot be sealed nothing is changed', async () => {
  await makeIdentity();
  await rm(join(home, 'vault.key'));
  const answer = await cli('settings', 'set', 'server.port', '4001');
  expect(answer).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('vault.key') });
  await expect(file()).rejects.toThrow('ENOENT');
});

test('a setting that keeps the identity from opening can be taken back', async () => {
  await makeIdentity();
  expect(await cli('settings', 'set', 'identity.store', 'keyring')).toMatchObject({ code: 0 });
  expect(await runCli(['identity', 'show'], { SVC_HOME: home, SVC_IDENTITY_STORE: '' })).toMatchObject({ code: 1 });
  expect(
    await runCli(['settings', 'unset', 'identity.store'], { SVC_HOME: home, SVC_IDENTITY_STORE: '' }),
  ).toMatchObject({ code: 0 });
  expect(await told()).toHaveLength(2);
});

test('of many changes at once none is lost, in the file or in the log', async () => {
  await makeIdentity();
  const changes: Record<string, number> = {
    'server.port': 4001,
    'inference.threads': 2,
    'inference.contextTokens': 512,
    'sampling.topK': 3,
    'sampling.maxTokens': 9,
    'log.days': 4,
  };
  const answers = await Promise.all(
    Object.entries(changes).map(([name, value]) => cli('settings', 'set', name, String(value))),
  );
  expect(answers.map(({ code }) => code)).toEqual(answers.map(() => 0));
  expect(await file()).toEqual(changes);
  expect(new Set((await told()).map(({ name }) => name))).toEqual(new Set(Object.keys(changes)));
});
