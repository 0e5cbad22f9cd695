/** What a start installs: from a registry of the test's own, by the real npm, into a project of a few packages. */
import { spawnSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { pack, startRegistry, type PackageRegistry, type PackedPackage } from '../support/package-registry.ts';
import { until } from '../support/wait.ts';

const SCRIPTS = resolve(import.meta.dirname, '../../scripts');
const ENGINE = `@node-llama-cpp/${process.platform}-${process.arch}`;
const ENGINES = [ENGINE, `${ENGINE}-cuda`, `${ENGINE}-cuda-ext`, `${ENGINE}-vulkan`, '@node-llama-cpp/plan9-x64'];
const PACKAGES = [
  pack('node-llama-cpp', '1.0.0', {}),
  ...ENGINES.map((name) => pack(name, '1.0.0', {})),
  pack('better-sqlite3', '1.0.0', { [`prebuilds/${process.platform}-${process.arch}.node`]: '' }),
  pack(`@typescript/typescript-${process.platform}-${process.arch}`, '1.0.0', {}),
  pack(`@esbuild/${process.platform}-${process.arch}`, '1.0.0', {}),
  pack('tester', '1.0.0', {}),
];

let project: string;
let registry: PackageRegistry;

beforeEach(async () => {
  project = realpathSync(mkdtempSync(join(tmpdir(), 'postern-install-')));
  cpSync(SCRIPTS, join(project, 'scripts'), { recursive: true });
  registry = await startRegistry(...PACKAGES);
  writeLock(PACKAGES);
});
afterEach(async () => {
  await registry.close();
  rmSync(project, { recursive: true, force: true });
});

function writeLock(packages: readonly PackedPackage[]): void {
  const isTop = ({ name }: PackedPackage) => !name.startsWith('@node-llama-cpp/') && name !== 'tester';
  const versions = (some: readonly PackedPackage[]) =>
    Object.fromEntries(some.map(({ name, version }) => [name, version]));
  const manifest = {
    name: 'project',
    dependencies: versions(packages.filter(isTop)),
    devDependencies: { tester: '1.0.0' },
  };
  const engines = versions(packages.filter(({ name }) => name.startsWith('@node-llama-cpp/')));
  const entries = packages.map(({ name, version, integrity }) => [
    `node_modules/${name}`,
    {
      version,
      integrity,
      ...(name === 'tester' ? { dev: true } : {}),
      ...(name === 'node-llama-cpp' ? { optionalDependencies: engines } : {}),
      ...(name in engines ? { optional: true } : {}),
    },
  ]);
  const lock = { name: 'project', lockfileVersion: 3, packages: { '': manifest, ...Object.fromEntries(entries) } };
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(project, 'package-lock.json'), JSON.stringify(lock));
}

function start(purpose: 'serving' | 'development', environment: Readonly<Record<string, string>> = {}) {
  const program = `import { install } from '${join(project, 'scripts/install.mjs')}'; install('${purpose}');`;
  const npm = { npm_config_registry: registry.url, npm_config_cache: join(project, 'npm') };
  return spawn(process.execPath, ['--input-type=module', '-e', program], {
    detached: true,
    env: { PATH: process.env['PATH'], HOME: project, ...npm, ...environment },
  });
}

async function install(...options: Parameters<typeof start>) {
  const child = start(...options);
  const [[code], stdout, stderr] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]);
  return { code: code as number, stdout, stderr };
}

const has = (name: string) => existsSync(join(project, 'node_modules', name, 'package.json'));
const installedEngines = () => ENGINES.filter(has);

describe('a start', () => {
  test('installs what serving needs, once, and is quiet about it afterwards', async () => {
    expect(await install('serving')).toMatchObject({ code: 0, stdout: '' });
    expect([has('better-sqlite3'), has('tester')]).toEqual([true, false]);
    const asked = registry.requests.length;
    expect(await install('serving')).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(registry.requests).toHaveLength(asked);
  });

  test('leaves what development needs where it is, also when the lock changes', async () => {
    await install('serving');
    await install('development');
    expect(has('tester')).toBe(true);
    expect(await install('serving')).toEqual({ code: 0, stdout: '', stderr: '' });
    writeLock(PACKAGES.filter(({ name }) => name !== '@node-llama-cpp/plan9-x64'));
    expect(await install('serving')).toMatchObject({ code: 0, stderr: expect.stringContaining('Installing') });
    expect(has('tester')).toBe(true);
  });

  test('leaves the lock file as it is', async () => {
    const before = readFileSync(join(project, 'package-lock.json'), 'utf8');
    await install('serving', { POSTERN_ENGINES: 'cpu' });
    expect(readFileSync(join(project, 'package-lock.json'), 'utf8')).toBe(before);
  });

  test('that is killed leaves what was installed, and the next one goes on', async () => {
    await install('serving', { POSTERN_ENGINES: 'cpu' });
    registry.stalls = true;
    const child = start('serving', { POSTERN_ENGINES: 'cuda' });
    await until(() => registry.requests.includes(`/${ENGINE}-cuda.tgz`));
    process.kill(-child.pid!, 'SIGKILL');
    await once(child, 'close');
    expect([has('better-sqlite3'), ...installedEngines()]).toEqual([true, ENGINE]);
    registry.stalls = false;
    expect(await install('serving', { POSTERN_ENGINES: 'cuda' })).toMatchObject({ code: 0 });
    expect(installedEngines()).toHaveLength(3);
  });

  test('beside another one leaves one whole installation', async () => {
    const both = await Promise.all([install('development'), install('development')]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect([has('tester'), has('better-sqlite3')]).toEqual([true, true]);
    expect(readdirSync(join(project, '.cache'))).toEqual([]);
  });
});

describe('of the engines', () => {
  test.each([
    ['cpu', [ENGINE]],
    ['cuda', [ENGINE, `${ENGINE}-cuda`, `${ENGINE}-cuda-ext`]],
    ['vulkan', [ENGINE, `${ENGINE}-vulkan`]],
    ['all', ENGINES.filter((name) => name.startsWith(ENGINE))],
  ])('POSTERN_ENGINES=%s chooses, and nothing else is fetched', async (wanted, expected) => {
    await install('serving', { POSTERN_ENGINES: wanted });
    expect(installedEngines()).toEqual(expected);
    const fetched = ENGINES.filter((name) => registry.requests.includes(`/${name}.tgz`));
    expect(fetched).toEqual(expected);
  });

  test.each([
    ['nothing', 'linux-x64', [], ['linux-x64']],
    ['an NVIDIA driver', 'linux-x64', ['/proc/driver/nvidia'], ['linux-x64', 'linux-x64-cuda', 'linux-x64-cuda-ext']],
    ['Vulkan without a card', 'linux-x64', ['/usr/lib64/libvulkan.so.1'], ['linux-x64']],
    ['Vulkan', 'linux-x64', ['/usr/lib64/libvulkan.so.1', '/dev/dri'], ['linux-x64', 'linux-x64-vulkan']],
    ['a Mac', 'darwin-arm64', [], ['mac-arm64-metal']],
    ['a board', 'linux-arm64', ['/proc/driver/nvidia'], ['linux-arm64']],
  ])('%s decides which', (_machine, target, present, expected) => {
    const names = [
      'linux-x64',
      'linux-x64-cuda',
      'linux-x64-cuda-ext',
      'linux-x64-vulkan',
      'linux-arm64',
      'mac-arm64-metal',
    ];
    const [platform, arch] = target.split('-');
    const program = `import { isUsableEngine } from '${join(SCRIPTS, 'engine-packages.mjs')}';
      const machine = { platform: '${platform}', arch: '${arch}', has: (path) => ${JSON.stringify(present)}.includes(path) };
      const names = ${JSON.stringify(names)};
      console.log(JSON.stringify(names.filter((name) => isUsableEngine('@node-llama-cpp/' + name, machine))));`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
      env: {},
    });
    expect(JSON.parse(stdout)).toEqual(expected);
  });
});

describe('nothing is installed', () => {
  const untouched = () => expect(existsSync(join(project, 'node_modules'))).toBe(false);

  test('where a part has no prebuilt version, and which is said', async () => {
    writeLock(PACKAGES.filter(({ name }) => !/^@esbuild|^@node-llama-cpp\/(?!plan9)/.test(name)));
    const { code, stderr } = await install('serving');
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/no prebuilt version for [\w-]+ of: the engine that runs models, esbuild\./),
    });
    untouched();
  });

  test('where the network is away', async () => {
    const { code, stderr } = await install('serving', {
      npm_config_registry: 'http://127.0.0.1:9',
      npm_config_fetch_retries: '0',
    });
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('The dependencies were not installed'),
    });
    untouched();
  });
});
