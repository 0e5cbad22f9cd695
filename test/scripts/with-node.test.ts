/**
 * The front doors on a machine whose Node is too old: what they fetch, what they refuse, what passes through. The
 * project here is the real scripts with a pin of its own, the registry one that the test runs, and the machine's
 * Node a script that says that it is 20.20.2. test/e2e/node-lines.test.ts does the same with real ones.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readFileSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { pack, startRegistry, type PackageRegistry, type PackedPackage } from '../support/package-registry.ts';
import { until } from '../support/wait.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const TOOLS = ['sh', 'sed', 'dirname', 'uname', 'cksum', 'readlink'];
const PLATFORM = `${process.platform}-${process.arch}`;

/** Says to be a version, and is the Node that runs the tests. */
const nodeScript = (version: string) => `#!/bin/sh
[ "$1" = --version ] && echo v${version} && exit
RUN_BY=$RUN_BY,${version} exec '${process.execPath}' "$@"
`;
/** A package as the real ones are, but with a script in the place of the binary. */
const packNode = (version: string, script: string) => pack('node-here', version, { 'bin/node': script });
const GOOD = packNode('24.99.0', nodeScript('24.99.0'));

/** What it was given and what it runs under, then as long as its standard input and the exit code that it names. */
const PROGRAM = `
let input = '';
for await (const chunk of process.stdin) input += chunk;
console.log(JSON.stringify({ args: process.argv.slice(2), input, pid: process.pid, runBy: process.env.RUN_BY }));
process.exitCode = Number(input) || 0;
`;

let scratch: string;
let project: string;
const registries: PackageRegistry[] = [];
const children: ChildProcess[] = [];

beforeEach(() => {
  scratch = realpathSync(mkdtempSync(join(tmpdir(), 'postern front door ')));
  project = join(scratch, 'project');
  mkdirSync(join(project, 'scripts'), { recursive: true });
  mkdirSync(join(scratch, 'bin'));
  for (const file of [
    'package.json',
    'postern',
    'scripts/with-node',
    'scripts/fetch-node.mjs',
    'scripts/npm.mjs',
    'scripts/scratch.mjs',
  ])
    cpSync(join(ROOT, file), join(project, file));
  writeFileSync(join(project, 'scripts', 'postern.mjs'), PROGRAM);
  for (const tool of [...TOOLS, 'npm']) symlinkSync(which(tool), join(scratch, 'bin', tool));
  pin(GOOD);
  systemNode('20.20.2');
});
afterEach(async () => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
  await Promise.all(registries.splice(0).map(({ close }) => close()));
  rmSync(scratch, { recursive: true, force: true });
});

const which = (tool: string) => spawnSync('which', [tool], { encoding: 'utf8' }).stdout.trim();
const fetched = () => (existsSync(join(project, '.node')) ? readdirSync(join(project, '.node')) : []);

function pin({ name, version, integrity }: PackedPackage): void {
  const pins = { [PLATFORM]: { package: name, version, integrity } };
  writeFileSync(join(project, 'scripts', 'pinned-node.json'), JSON.stringify(pins));
}

function systemNode(version: string): void {
  writeFileSync(join(scratch, 'bin', 'node'), nodeScript(version));
  chmodSync(join(scratch, 'bin', 'node'), 0o755);
}

async function serve(served: PackedPackage = GOOD): Promise<PackageRegistry> {
  const started = await startRegistry(served);
  registries.push(started);
  return started;
}

interface Run {
  readonly url?: string;
  readonly program?: string;
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly detached?: boolean;
}

function begin({
  url = 'http://127.0.0.1:9',
  program,
  args = [],
  environment = {},
  detached = false,
}: Run): ChildProcess {
  const child = spawn(program ?? join(project, 'postern'), args, {
    cwd: scratch,
    detached,
    env: {
      PATH: join(scratch, 'bin'),
      HOME: scratch,
      npm_config_registry: url,
      npm_config_cache: join(scratch, 'npm'),
      ...environment,
    },
  });
  children.push(child);
  return child;
}

async function run(options: Run, input = '') {
  const child = begin(options);
  child.stdin?.end(input);
  const [[code], stdout, stderr] = await Promise.all([
    once(child, 'close') as Promise<[number | null]>,
    text(child.stdout!),
    text(child.stderr!),
  ]);
  return { code, stdout, stderr, pid: child.pid };
}

describe('a Node that is new enough', () => {
  test.each(['22.14.0', '22.23.3', '23.6.0', '24.21.0', '26.10.0', '31.0.0-nightly'])(
    '%s is used as it is',
    async (version) => {
      systemNode(version);
      const { code, stdout, stderr } = await run({ args: ['a b', '--port', '1'] });
      expect(JSON.parse(stdout)).toMatchObject({ args: ['a b', '--port', '1'], runBy: `,${version}` });
      expect({ code, stderr, fetched: fetched() }).toEqual({ code: 0, stderr: '', fetched: [] });
    },
  );

  test('is what POSTERN_NODE names, whatever the machine has', async () => {
    systemNode('22.23.3');
    mkdirSync(join(scratch, 'other'));
    writeFileSync(join(scratch, 'other', 'node'), nodeScript('26.1.0'), { mode: 0o755 });
    const { stdout } = await run({ environment: { POSTERN_NODE: join(scratch, 'other', 'node') } });
    expect(JSON.parse(stdout)).toMatchObject({ runBy: ',26.1.0' });
  });
});

describe('a Node that is too old', () => {
  test('is replaced by the pinned one, which is fetched once and said in one line', async () => {
    const npm = await serve();
    const first = await run({ url: npm.url });
    expect(JSON.parse(first.stdout)).toMatchObject({ runBy: expect.stringMatching(/,24\.99\.0$/) });
    expect(first.code).toBe(0);
    expect(first.stderr).toMatch(
      /^Postern needs Node 22\.14 or newer; this is 20\.20\.2\. Fetching Node 24\.99\.0 .*POSTERN_NODE.*\n$/,
    );
    const asked = npm.requests.length;
    const second = await run({ url: npm.url });
    expect({ code: second.code, stderr: second.stderr }).toEqual({ code: 0, stderr: '' });
    expect(npm.requests).toHaveLength(asked);
    expect(fetched()).toHaveLength(1);
  });

  test.each(['22.13.1', '23.5.0'])('%s, which crashes on the database, is one', async (version) => {
    systemNode(version);
    const { stdout } = await run({ url: (await serve()).url });
    expect(JSON.parse(stdout)).toMatchObject({ runBy: expect.stringMatching(/,24\.99\.0$/) });
  });

  test('it is fetched from where the machine’s own settings of npm say', async () => {
    const { url, requests } = await serve();
    const prefix = join(scratch, 'prefix');
    mkdirSync(join(prefix, 'etc'), { recursive: true });
    writeFileSync(join(prefix, 'etc', 'npmrc'), `registry=${url}\n`);
    const { code } = await run({ environment: { PREFIX: prefix, npm_config_registry: '' } });
    expect(requests.length).toBeGreaterThan(0);
    expect(code).toBe(0);
  });

  test('a new pin is fetched again', async () => {
    await run({ url: (await serve()).url });
    const newer = packNode('24.99.1', nodeScript('24.99.1'));
    pin(newer);
    const { stdout } = await run({ url: (await serve(newer)).url });
    expect(JSON.parse(stdout)).toMatchObject({ runBy: expect.stringMatching(/,24\.99\.1$/) });
  });

  test('standard input, exit code and process are the program’s own', async () => {
    const { url } = await serve();
    for (const round of ['fetching', 'fetched']) {
      const { code, stdout, pid } = await run({ url }, '37');
      expect({ round, code, ...JSON.parse(stdout) }).toMatchObject({ round, code: 37, input: '37', pid });
    }
  });

  test('a signal reaches the program, and nothing is left behind', async () => {
    const { url } = await serve();
    await run({ url });
    const child = begin({ url });
    await until(() => readFileSync(`/proc/${String(child.pid)}/cmdline`, 'utf8').startsWith(process.execPath));
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([null, 'SIGTERM']);
  });

  test('two front doors at once both come through', async () => {
    const { url } = await serve();
    const both = await Promise.all([run({ url }), run({ url })]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(fetched()).toHaveLength(1);
  });

  test('a fetch that is killed leaves no half of a Node', async () => {
    const npm = await serve();
    npm.stalls = true;
    const child = begin({ url: npm.url, detached: true });
    await until(() => npm.requests.includes('/node-here.tgz'));
    process.kill(-child.pid!, 'SIGKILL');
    await once(child, 'close');
    expect(fetched().filter((name) => !name.startsWith('scratch-'))).toEqual([]);
    npm.stalls = false;
    expect(await run({ url: npm.url })).toMatchObject({ code: 0 });
  });

  test('./postern works from elsewhere, through symlinks', async () => {
    const { url } = await serve();
    symlinkSync('project/postern', join(scratch, 'one'));
    symlinkSync(join(scratch, 'one'), join(scratch, 'bin', 'two'));
    const { stdout } = await run({ url, program: join(scratch, 'bin', 'two'), args: ['status'] });
    expect(JSON.parse(stdout)).toMatchObject({ args: ['status'] });
  });
});

describe('nothing is run', () => {
  async function refused(options: Run) {
    const { code, stdout, stderr } = await run(options);
    expect({ code, stdout, fetched: fetched() }).toEqual({ code: 1, stdout: '', fetched: [] });
    return stderr;
  }

  const evil = packNode('24.99.0', `${nodeScript('24.99.0')}# and more\n`);

  test('that has another hash than the repository names, though the registry vouches for it', async () => {
    expect(await refused({ url: (await serve(evil)).url })).toMatch(/EINTEGRITY[^]*Node 24\.99\.0 was not fetched/);
  });

  test('that has another hash than the registry itself names', async () => {
    const { url } = await serve({ ...evil, integrity: GOOD.integrity });
    expect(await refused({ url })).toMatch(/EINTEGRITY[^]*Node 24\.99\.0 was not fetched/);
  });

  test('that does not run on this machine', async () => {
    const foreign = packNode('24.99.0', '#!/no/such/loader\n');
    pin(foreign);
    expect(await refused({ url: (await serve(foreign)).url })).toContain('does not run on this machine');
  });

  test('where there is no network, and how to go on is said', async () => {
    expect(await refused({})).toMatch(
      /ECONNREFUSED[^]*Try again with a network, or install Node 24, or set POSTERN_NODE/,
    );
  });

  test('where the platform has no Node to fetch', async () => {
    writeFileSync(join(project, 'scripts', 'pinned-node.json'), '{}');
    expect(await refused({})).toContain(`none to fetch for ${PLATFORM}: install Node 24`);
  });

  test.each(['16.20.2', '18.20.8'])('by Node %s, which can’t even fetch', async (version) => {
    systemNode(version);
    expect(await refused({})).toMatch(new RegExp(`^Postern needs Node 22\\.14 or newer; this is ${version}\\..*\n$`));
  });

  test('without any Node', async () => {
    rmSync(join(scratch, 'bin', 'node'));
    expect(await refused({})).toMatch(
      /^Postern needs Node 22\.14 or newer, and node was not found\. Install Node 24.*\n$/,
    );
  });

  test('by a POSTERN_NODE that is too old, or missing', async () => {
    const node = join(scratch, 'bin', 'node');
    expect(await refused({ environment: { POSTERN_NODE: node } })).toContain('POSTERN_NODE is 20.20.2');
    expect(await refused({ environment: { POSTERN_NODE: `${node}s` } })).toContain(`${node}s was not found`);
  });
});

test('each npm script comes through the front door', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  for (const script of Object.values(scripts)) expect(script).toMatch(/^sh scripts\/with-node /);
});
