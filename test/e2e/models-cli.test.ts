/** `postern models list`, `show` and `rm` as a user runs them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, readdir, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { putFile, putOllamaModel } from '../support/app-models.ts';
import { ggufModel, ggufModel as model } from '../support/gguf.ts';
import { has, terminals } from '../support/requirements.ts';
import { cliPath, runCli, type CliResult } from '../support/server.ts';

const builtInPath = fileURLToPath(new URL('../../models/foundation/foundation.gguf', import.meta.url));

let folder: string;
let modelsDir: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-models-'));
  modelsDir = join(folder, 'models');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const environment = () => ({
  SVC_HOME: join(folder, 'home'),
  SVC_MODELS_DIR: modelsDir,
  HOME: folder,
  OLLAMA_MODELS: '',
});
const cli = (...args: string[]): Promise<CliResult> => runCli(['models', ...args], environment());

/** In a terminal of its own, as util-linux' `script` makes one, with a person who types as soon as they are asked. */
async function typed(words: string, ...args: string[]): Promise<{ readonly code: number; readonly screen: string }> {
  // A shell that stays in between dies of the Ctrl-C that the program takes.
  const command = ['exec', process.execPath, cliPath, 'models', ...args].join(' ');
  const child = spawn('script', ['-qec', command, '/dev/null'], { env: { ...process.env, ...environment() } });
  let screen = '';
  child.stdout.on('data', (chunk: Buffer) => {
    screen += chunk.toString();
    if (screen.includes('[y/N]') && !child.stdin.writableEnded) child.stdin.end(words);
  });
  const [code] = (await once(child, 'close')) as [number];
  return { code, screen };
}
const everything = async () =>
  (await readdir(modelsDir, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(modelsDir.length + 1));

describe('rm', () => {
  test('refuses what is not ours, and names whose it is', async () => {
    await putFile(join(folder, '.lmstudio/models/org/repo/theirs.gguf'), model());
    await putOllamaModel(join(folder, '.ollama/models'), 'registry.ollama.ai/library/llama/1b', model());
    for (const [id, words] of [
      ['foundation', 'part of Postern'],
      ['theirs', 'LM Studio'],
      ['llama:1b', 'ollama rm llama:1b'],
      ['nothing', 'models list'],
    ] as const) {
      expect(await cli('rm', id, '--yes')).toMatchObject({ code: 1, stderr: expect.stringContaining(words) });
    }
    expect((await cli('list')).stdout).toMatch(/llama:1b[^]*theirs/);
  });

  test('asks first, and where nobody can answer says how', async () => {
    await putFile(join(modelsDir, 'org/repo/mine.gguf'), model());
    expect(await cli('rm', 'mine')).toMatchObject({ code: 1, stderr: expect.stringMatching(/Remove mine.*--yes/s) });
    expect(await everything()).toEqual(['org/repo/mine.gguf']);
    await putFile(join(modelsDir, 'org/readme.md'), 'stays');
    expect(await cli('rm', 'mine', '--yes')).toMatchObject({ code: 0 });
    expect(await everything()).toEqual(['org/readme.md']);
    await expect(stat(join(modelsDir, 'org/repo'))).rejects.toThrow();
  });

  test.runIf(has(terminals))('takes no for an answer, and Ctrl-C, and yes', async () => {
    await putFile(join(modelsDir, 'mine.gguf'), model());
    for (const words of ['n\n', '\n', '\u0003', '\u0004']) {
      expect(await typed(words, 'rm', 'mine')).toMatchObject({
        code: 1,
        screen: expect.stringContaining('Nothing was'),
      });
      expect(await everything()).toEqual(['mine.gguf']);
    }
    expect(await typed('y\n', 'rm', 'mine')).toMatchObject({
      code: 0,
      screen: expect.stringContaining('1.0 MB freed'),
    });
    expect(await everything()).toEqual([]);
  });

  test('of a link removes the link', async () => {
    const target = await putFile(join(folder, 'disk/big.gguf'), model());
    await mkdir(modelsDir);
    await symlink(target, join(modelsDir, 'big.gguf'));
    expect(await cli('rm', 'big', '--yes')).toMatchObject({ code: 0, stderr: expect.stringContaining('0 B freed') });
    expect((await stat(target)).size).toBeGreaterThan(0);
  });
});

test.runIf(has(terminals))('what a file calls itself cannot command the terminal', async () => {
  await putFile(
    join(modelsDir, 'evil\u001b[2J\u009b2J.gguf'),
    ggufModel(4000, { 'general.license': 'mit\u001b]0;x\u0007' }),
  );
  const { screen } = await typed('', 'list');
  expect(screen).toContain('evil\ufffd[2J\ufffd2J');
  const shown = (await typed('', 'show', "'evil\u001b[2J\u009b2J'")).screen;
  expect(shown).toContain('mit?]0;x?');
  // The heads are bold, and nothing else commands anything.
  const rest = (screen + shown).replaceAll('\u001b[1m', '').replaceAll('\u001b[22m', '');
  for (const command of ['\u001b', '\u009b', '\u0007']) expect(rest).not.toContain(command);
  const piped = JSON.parse((await cli('list', '--json')).stdout) as { id: string }[];
  expect(piped.map(({ id }) => id)).toContain('evil\u001b[2J\u009b2J');
});

test('show tells all that is known, of a damaged file too', async () => {
  const digest = await putOllamaModel(
    join(folder, '.ollama/models'),
    'registry.ollama.ai/library/tiny/latest',
    await readFile(builtInPath),
  );
  const shown = await cli('show', 'tiny');
  expect(shown.code).toBe(0);
  for (const words of [digest, 'ollama', 'Q8_0', '4096 tokens', 'completion, tools', 'fits, about']) {
    expect(shown.stdout).toContain(words);
  }
  expect(JSON.parse((await cli('show', 'foundation', '--json')).stdout)).toMatchObject({
    id: 'foundation',
    architecture: 'qwen3',
    capabilities: ['completion', 'tools'],
    fit: { verdict: 'fits' },
    memory: { cacheBytes: 12_582_912 },
  });
  await putFile(join(modelsDir, 'broken.gguf'), 'nothing of the kind');
  expect((await cli('show', 'broken')).stdout).toContain('cannot be read');
  expect((await cli('list')).stdout).toMatch(/broken.*not readable/);
});
