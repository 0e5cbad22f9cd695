/**
 * Coding agents as their users run them: installed from npm, set up as `docs/clients.md` has it, and given a task that
 * takes their tools. Only the model is scripted. They run where nothing but the service can be reached.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { installCodingAgents } from '../support/coding-agents.ts';
import { documentedSetup, writeFiles } from '../support/documented-setup.ts';
import { createLoneMachine, type Machine } from '../support/network.ts';
import { has, networkNamespaces } from '../support/requirements.ts';
import type { Step } from '../support/script.ts';
import { startWithScriptedModel } from '../support/scripted-model.ts';
import { cliPath, type TestServer } from '../support/server.ts';

const TASK = 'Copy the word in note.txt to answer.txt';
const WORD = 'word-5eb1ca7f';

interface Agent {
  /** The section of `docs/clients.md`. */
  readonly heading: string;
  /** Appended to its documented command: do the task with no one at the terminal, writing included. */
  readonly args: readonly string[];
  /** The calls of its own tools that read the note in the project, and write the answer. */
  readonly calls: (project: string) => readonly Step[];
}

const AGENTS: readonly Agent[] = [
  {
    heading: 'Codex',
    args: ['exec', '--skip-git-repo-check', '--sandbox', 'workspace-write', TASK],
    calls: () => [
      { tool: 'exec_command', input: { cmd: 'cat note.txt' } },
      { tool: 'exec_command', input: { cmd: 'printf %s {found} > answer.txt' } },
    ],
  },
  {
    heading: 'Claude Code',
    args: ['-p', '--permission-mode', 'acceptEdits', TASK],
    calls: (project) => [
      { tool: 'Read', input: { file_path: join(project, 'note.txt') } },
      { tool: 'Write', input: { file_path: join(project, 'answer.txt'), content: '{found}' } },
    ],
  },
  {
    heading: 'opencode',
    args: ['run', TASK],
    calls: (project) => [
      { tool: 'read', input: { filePath: join(project, 'note.txt') } },
      { tool: 'write', input: { filePath: join(project, 'answer.txt'), content: '{found}' } },
    ],
  },
  {
    heading: 'pi',
    args: ['-p', TASK],
    calls: () => [
      { tool: 'read', input: { path: 'note.txt' } },
      { tool: 'write', input: { path: 'answer.txt', content: '{found}' } },
    ],
  },
  {
    heading: 'Continue',
    args: ['-p', '--allow', 'Write', TASK],
    calls: () => [
      { tool: 'Read', input: { filepath: 'note.txt' } },
      { tool: 'Write', input: { filepath: 'answer.txt', content: '{found}' } },
    ],
  },
  {
    heading: 'Qwen Code',
    args: ['--approval-mode', 'auto-edit', '-p', TASK],
    calls: (project) => [
      { tool: 'read_file', input: { file_path: join(project, 'note.txt') } },
      { tool: 'write_file', input: { file_path: join(project, 'answer.txt'), content: '{found}' } },
    ],
  },
];

const agents = await installCodingAgents();

describe.runIf(has(networkNamespaces) && has(agents))('a coding agent, set up as documented', () => {
  test.each(AGENTS)('$heading reads a file, writes another, and says so', async ({ heading, args, calls }) => {
    const [home, project] = [await temporaryFolder(), await temporaryFolder()];
    await writeFile(join(project, 'note.txt'), `${WORD}\n`);
    const { files, commands } = await documentedSetup(heading);
    await writeFiles(home, files);
    const service = await serveAlone([...calls(project), { text: 'I copied {found}.' }]);
    const said = await run([...service.within, 'bash', '-c', `${POSTERN}\n${commands} "$@"`, 'bash', ...args], {
      cwd: project,
      environment: { HOME: home, SVC_HOME: service.home },
    });
    expect(said).toMatchObject({ stdout: expect.stringContaining(`I copied ${WORD}.`) });
    expect(await readFile(join(project, 'answer.txt'), 'utf8')).toBe(WORD);
  });
});

/** The service, at its usual address on a machine without a network. @returns what runs a command there */
async function serveAlone(steps: readonly Step[]): Promise<Pick<Machine, 'within'> & Pick<TestServer, 'home'>> {
  const machine = await createLoneMachine();
  onTestFinished(() => machine.remove());
  const script = { task: TASK, find: 'word-[0-9a-f]{8}', steps };
  const server = await startWithScriptedModel(script, { within: machine.within, args: ['--port', '1337'] });
  onTestFinished(() => server.stop());
  return { within: machine.within, home: server.home };
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-agent-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

/** As it is on the path of whoever installed it. */
const POSTERN = `postern() { '${process.execPath}' '${cliPath}' "$@"; }`;

interface Surroundings {
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Nothing of the environment of whoever runs the tests reaches the agent: a key, say, or a proxy. */
async function run([command, ...args]: readonly string[], { cwd, environment }: Surroundings) {
  const PATH = [agents.bin, process.env['PATH']].join(delimiter);
  const child = spawn(command!, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env: { ...environment, PATH } });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as number | null, stdout, stderr };
}
