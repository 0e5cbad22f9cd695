/** `postern run` in scripts and pipes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startScriptedService, type ScriptedService } from '../support/scripted-service.ts';
import { cliPath, runCli, startServer } from '../support/server.ts';

let home: string;
let service: ScriptedService | undefined;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-run-'));
});
afterEach(async () => {
  await service?.close();
  service = undefined;
  await rm(home, { recursive: true, force: true });
});

const run = (args: readonly string[], input = '') => runCli(['run', ...args], { SVC_HOME: home }, input);

async function scripted(models?: readonly string[]): Promise<ScriptedService> {
  service = await startScriptedService(home, models === undefined ? {} : { models });
  return service;
}

describe('with the service that runs', () => {
  test('the answer alone is on stdout, whatever the prompt came by, and each is a request of the log', async () => {
    const server = await startServer({ home });
    try {
      const question = 'What is the capital of France?';
      for (const [args, input] of [
        [[question], ''],
        [[], `${question}\n`],
        [['--model', 'foundation', 'What is the capital'], 'of France?'],
      ] as const) {
        expect(await run(args, input)).toEqual({ code: 0, stdout: expect.stringMatching(/^.*Paris.*\n$/), stderr: '' });
      }
      const { code, stdout } = await run(['--json', question]);
      expect({ code, answer: JSON.parse(stdout) as object }).toEqual({
        code: 0,
        answer: {
          model: 'foundation',
          content: expect.stringContaining('Paris'),
          finish_reason: 'stop',
          input_tokens: expect.any(Number),
          output_tokens: expect.any(Number),
        },
      });
      const log = await runCli(['logs', '--json'], { SVC_HOME: home });
      const paths = log.stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { path: string }).path);
      expect(paths.filter((path) => path === '/v1/chat/completions')).toHaveLength(4);
      const cut = await run(['--max-tokens', '3', 'Tell me a story about Ada.']);
      expect(cut).toMatchObject({ code: 0, stderr: expect.stringContaining('cut off') });
    } finally {
      await server.stop();
    }
  });

  test('a model that there is not is named with the one that was meant', async () => {
    const server = await startServer({ home });
    try {
      const { code, stdout, stderr } = await run(['-m', 'fundation', 'Hello']);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/fundation.*foundation/);
    } finally {
      await server.stop();
    }
  });
});

test('without a service it says what starts one', async () => {
  expect(await run(['Hello'])).toEqual({
    code: 1,
    stdout: '',
    stderr: 'postern: the service is not running. "postern serve" starts it.\n',
  });
});

test.each([
  [[], '', 'there is no prompt'],
  [['--max-tokens', '0', 'Hello'], '', '--max-tokens'],
])('%j is misuse', async (args, input, words) => {
  expect(await run(args, input)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(words) });
});

test('of several models one has to be named', async () => {
  await scripted(['one', 'two', 'foundation']);
  const { code, stderr } = await run(['Hello']);
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'postern: which model? Name one:\n  one\n  two\n' });
});

test('the prompt, what is piped in, the files and the system message make one request', async () => {
  const { nextChat } = await scripted();
  const path = join(home, 'notes.md');
  await writeFile(path, 'some ``` fences\n');
  const answer = run(['--file', path, '--system', 'Be brief.', 'Sum', 'it up:'], 'piped\n');
  const chat = await nextChat();
  expect(chat.body).toMatchObject({
    model: 'scripted',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'notes.md:\n````\nsome ``` fences\n````\n\nSum it up:\n\npiped' },
    ],
  });
  chat.think('Hmm.');
  chat.say('A \u001b[31mshort\u0007 answer');
  chat.finish();
  // Programs get every byte of the answer, and nothing of what the model thought.
  expect(await answer).toEqual({ code: 0, stdout: 'A \u001b[31mshort\u0007 answer\n', stderr: '' });
});

test('what is no text is not sent', async () => {
  await scripted();
  const path = join(home, 'picture.png');
  await writeFile(path, Buffer.from([0x89, 0x50, 0xff, 0xfe]));
  expect(await run(['--file', path, 'What is it?'])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/picture\.png is no text/),
  });
  for (const [file, words] of [
    [join(home, 'nothing'), 'does not exist'],
    [home, 'is no file'],
  ]) {
    expect(await run(['--file', file!, 'What is it?'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(words!),
    });
  }
});

describe('an answer that does not become whole', () => {
  test.each([
    ['a failure of the engine', { say: 'the engine broke', act: 'error' }],
    ['the end of the service', { say: 'ended before the answer did', act: 'cut' }],
  ] as const)('%s: exit code 1, and why', async (_, { say, act }) => {
    const { nextChat } = await scripted();
    const answer = run(['Hello']);
    const chat = await nextChat();
    chat.say('Half an');
    if (act === 'cut') chat.cut();
    else chat.send({ error: { message: 'the engine broke' } });
    expect(await answer).toMatchObject({ code: 1, stderr: expect.stringContaining(say) });
    if (act === 'error') chat.cut();
  });

  test('Ctrl-C and kill end the request at once', async () => {
    const { nextChat } = await scripted();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      const child = spawn(process.execPath, [cliPath, 'run', 'Hello'], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, SVC_HOME: home },
      });
      const chat = await nextChat();
      chat.say('Half an');
      await once(child.stdout, 'data');
      child.kill(signal);
      await chat.left;
      expect(((await once(child, 'close')) as [number])[0]).toBe(1);
    }
  });

  test('a reader that has seen enough ends the request, which is no failure', async () => {
    const { nextChat } = await scripted();
    const child = spawn(
      'bash',
      ['-c', `"$0" "$1" run Hello | head -c 4; exit \${PIPESTATUS[0]}`, process.execPath, cliPath],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, SVC_HOME: home },
      },
    );
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const chat = await nextChat();
    const [code] = await Promise.all([
      once(child, 'close').then(([ended]) => ended as number),
      // Writing is how a program finds out.
      (async () => {
        while (!chat.hasLeft()) {
          chat.say('word ');
          await new Promise((resolve) => setImmediate(resolve));
        }
      })(),
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});
