/** How the command line treats people: what it takes mistyped names for, its tables, its colours. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { atTerminal } from '../support/at-terminal.ts';
import { has, terminals } from '../support/requirements.ts';
import { runCli } from '../support/server.ts';

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-manner-'));
});
afterAll(() => rm(home, { recursive: true, force: true }));

const cli = (line: string, environment: Readonly<Record<string, string>> = {}) =>
  runCli(line.split(' '), { SVC_HOME: home, HOME: home, ...environment });

test.each([
  ['srve', 'there is no command "srve". Did you mean "serve"?'],
  ['serve --prot 1', 'there is no option --prot. Did you mean "--port"?'],
  ['keys lst', 'say "create", "list", "revoke" or "inspect". Did you mean "list"?'],
  ['models shwo', 'Did you mean "show"?'],
  ['settings get server.prt', 'there is no setting "server.prt". Did you mean "server.port"?'],
  ['devices list --watch', 'there is no option --watch'],
  ['keys list --label x', '"keys list" has no option --label.'],
])('"%s" is misuse, and the near name is said', async (line, words) => {
  expect(await cli(line)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(words) });
});

test('what may be a secret is not said back', async () => {
  for (const line of ['keys svc-v1.secret', 'invite SVC:secret', 'identity abandon', 'access svc-v1.secret'])
    expect((await cli(line)).stderr).not.toMatch(/secret|abandon/);
});

test('a noun by itself lists, and so does "list", under every noun', async () => {
  for (const noun of ['keys', 'devices', 'gateways', 'models', 'settings', 'audit']) {
    const [bare, list, short] = [await cli(noun), await cli(`${noun} list`), await cli(`${noun} ls`)];
    expect(bare, noun).toMatchObject({ code: 0 });
    expect(list, noun).toEqual(bare);
    expect(short, noun).toEqual(bare);
  }
});

test('tables have heads, and their columns stand under each other', async () => {
  await cli('keys create --label laptop');
  await cli('keys create --agent 7 --expires never');
  for (const noun of ['keys', 'models', 'settings']) {
    const [heads = '', ...rows] = (await cli(noun)).stdout.trimEnd().split('\n');
    expect(heads).toMatch(/^[A-Z]+( +[A-Z]+)+/);
    expect(rows.length).toBeGreaterThan(0);
    // Before each head, at least two columns are blank in every row.
    const starts = [...heads.matchAll(/ {2}(?=\S)/g)].map(({ index }) => index);
    for (const row of rows) for (const start of starts) expect(row.slice(start, start + 2).trim(), row).toBe('');
  }
});

// oxlint-disable-next-line no-control-regex
const COLOUR = /\u001b\[[0-9;]*m/;

test('a pipe has no colours, unless they are wanted', async () => {
  expect((await cli('keys')).stdout).not.toMatch(COLOUR);
  expect((await cli('keys', { FORCE_COLOR: '1' })).stdout).toMatch(COLOUR);
  expect((await cli('srve', { FORCE_COLOR: '1' })).stderr).toMatch(COLOUR);
  const { stdout } = await cli('keys --json', { FORCE_COLOR: '1' });
  expect(JSON.parse(stdout)).toHaveLength(2);
});

describe.runIf(has(terminals))('on a screen', () => {
  test.each([
    [{}, true],
    [{ NO_COLOR: '1' }, false],
    [{ TERM: 'dumb' }, false],
  ])('colours with %j: %s', async (environment, hasColour) => {
    const terminal = atTerminal(['keys'], { environment: { SVC_HOME: home, ...environment } });
    expect(await terminal.ended()).toBe(0);
    expect(COLOUR.test(terminal.raw())).toBe(hasColour);
  });
});
