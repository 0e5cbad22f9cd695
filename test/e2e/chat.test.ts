/** `postern chat` at a terminal of its own. */
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { atTerminal, type AtTerminal } from '../support/at-terminal.ts';
import { has, terminals } from '../support/requirements.ts';
import { startScriptedService, type ScriptedService } from '../support/scripted-service.ts';
import { runCli, startServer } from '../support/server.ts';

const [CTRL_C, CTRL_D, UP] = ['\u0003', '\u0004', '\u001b[A'];

let home: string;
let service: ScriptedService;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-chat-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

interface ChatOptions {
  readonly columns?: number;
  readonly environment?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
}

function open({ columns = 80, environment = {}, args = [] }: ChatOptions = {}): AtTerminal {
  return atTerminal(['chat', ...args], { environment: { SVC_HOME: home, HOME: home, ...environment }, columns });
}

async function ready(options: ChatOptions = {}): Promise<AtTerminal> {
  const chat = open(options);
  await chat.sees('>>> ');
  return chat;
}

test('a pipe is no terminal, and is shown the way', async () => {
  expect(await runCli(['chat'], { SVC_HOME: home }, 'Hello\n')).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('postern run'),
  });
});

describe.runIf(has(terminals))('with the service that runs', () => {
  test('a model answers, remembers what was said, and each answer is a request of the log', async () => {
    const server = await startServer({ home });
    try {
      const chat = await ready();
      chat.type('My name is Ada.\r');
      await chat.sees('>>> ');
      chat.type('What is my name?\r');
      await chat.sees(/Ada[^]*>>> /);
      chat.type('/model fundation\r');
      await chat.sees(/fundation.*foundation/);
      chat.type(CTRL_D);
      expect(await chat.ended()).toBe(0);
      const log = await runCli(['logs', '--json'], { SVC_HOME: home });
      expect(log.stdout.match(/"path":"\/v1\/chat\/completions"/g)).toHaveLength(2);
    } finally {
      await server.stop();
    }
  });

  test('without one it says what starts it', async () => {
    const chat = open();
    expect(await chat.ended()).toBe(1);
    expect(chat.screen()).toContain('"postern serve" starts it');
  });
});

describe.runIf(has(terminals))('at a terminal', () => {
  beforeEach(async () => {
    service = await startScriptedService(home, { models: ['scripted', 'other'] });
  });
  afterEach(() => service.close());

  /** Types a message and answers it. @returns the messages that were sent */
  async function exchange(chat: AtTerminal, keys: string, answer = 'Well.') {
    chat.type(keys);
    const asked = await service.nextChat();
    asked.say(answer);
    asked.finish();
    await chat.sees('>>> ');
    return asked.body.messages;
  }
  const args = ['scripted'];

  test('an answer shows as it comes, and what the model thinks is faint', async () => {
    const chat = await ready({ args });
    chat.type('Hello\r');
    const asked = await service.nextChat();
    asked.think('They greet.');
    await chat.sees('They greet.');
    asked.say('Good ');
    await chat.sees('Good ');
    asked.say('day');
    asked.finish();
    await chat.sees('day\n>>> ');
    expect(chat.raw()).toContain('\u001b[2mThey greet.\u001b[22m');
    chat.type('/exit\r');
    expect(await chat.ended()).toBe(0);
  });

  test('Ctrl-C stops the answer and not the chat, which remembers what was shown', async () => {
    const chat = await ready({ args });
    chat.type('Count.\r');
    const asked = await service.nextChat();
    asked.say('One, two');
    await chat.sees('One, two');
    chat.type(CTRL_C);
    await asked.left;
    await chat.sees(/Stopped\.\n>>> /);
    expect(await exchange(chat, 'Go on.\r')).toEqual([
      { role: 'user', content: 'Count.' },
      { role: 'assistant', content: 'One, two' },
      { role: 'user', content: 'Go on.' },
    ]);
    // At the prompt it takes away what was typed, and leaves nobody out.
    chat.type(`half a mess${CTRL_C}`);
    chat.type(CTRL_C);
    await chat.sees('Ctrl-D or /exit leaves.');
    expect((await exchange(chat, 'whole\r')).at(-1)).toEqual({ role: 'user', content: 'whole' });
    chat.type(CTRL_D);
    expect(await chat.ended()).toBe(0);
  });

  test('what is typed during an answer is asked next, and not written into it', async () => {
    const chat = await ready({ args });
    chat.type('First\r');
    const asked = await service.nextChat();
    asked.say('A');
    await chat.sees('A');
    chat.type('Second\rThird');
    asked.say('B');
    await chat.sees('B');
    asked.finish();
    expect(chat.screen()).toContain('AB');
    const next = await service.nextChat();
    expect(next.body.messages.at(-1)?.content).toBe('Second');
    next.say('C');
    next.finish();
    await chat.sees('>>> Third');
    expect((await exchange(chat, ' and more\r')).at(-1)?.content).toBe('Third and more');
    chat.type(CTRL_D);
    await chat.ended();
  });

  test('the arrow keys bring back what was said; nothing of it is on the disk', async () => {
    const chat = await ready({ args });
    await exchange(chat, 'a secret plan\r', 'a secret answer');
    expect((await exchange(chat, `${UP}!\r`)).at(-1)?.content).toBe('a secret plan!');
    chat.type(CTRL_D);
    await chat.ended();
    expect(await readdir(home)).toEqual(['run.json']);
  });

  test.each([
    ['a fence', '"""one\r  two\rthree"""\r', 'one\n  two\nthree'],
    ['backslashes', 'one\\\rtwo\r', 'one\ntwo'],
    ['a paste', '\u001b[200~one\r\ttwo\r/three\u001b[201~\r', 'one\n\ttwo\n/three'],
  ])('a message of several lines: %s', async (_, keys, content) => {
    const chat = await ready({ args });
    expect((await exchange(chat, keys)).at(-1)?.content).toBe(content);
    chat.type(CTRL_D);
    await chat.ended();
  });

  test('files go with the next message; a conversation is saved for its owner alone, and loaded', async () => {
    const notes = join(home, 'notes.txt');
    await writeFile(notes, 'The sea is blue.\n');
    const chat = await ready({ args });
    chat.type('/system Be brief.\r');
    await chat.sees('>>> ');
    chat.type('/file ~/notes.txt\r');
    await chat.sees('goes with your next message');
    const sent = await exchange(chat, 'What colour?\r', 'Blue.');
    expect(sent).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'notes.txt:\n```\nThe sea is blue.\n```\n\nWhat colour?' },
    ]);
    const saved = join(home, 'sea.json');
    chat.type(`/save ${saved}\r`);
    await chat.sees('Saved in');
    expect(((await stat(saved)).mode & 0o777).toString(8)).toBe('600');
    expect(JSON.parse(await readFile(saved, 'utf8'))).toEqual({
      model: 'scripted',
      messages: [...sent, { role: 'assistant', content: 'Blue.' }],
    });
    chat.type(`/save ${saved}\r`);
    await chat.sees('is there already');
    chat.type('/clear\r');
    await chat.sees('Forgotten.');
    expect(await exchange(chat, 'Hello\r')).toHaveLength(2);
    chat.type(`/load ${saved}\r`);
    await chat.sees('3 messages');
    expect(await exchange(chat, 'And the sky?\r')).toHaveLength(4);
    chat.type('/file /dev/zero\r');
    await chat.sees('is no file');
    chat.type(CTRL_D);
    expect(await chat.ended()).toBe(0);
  });

  test('the model can be changed; a command that there is not is named with the one that was meant', async () => {
    const chat = await ready({ args });
    chat.type('/modle\r');
    await chat.sees('Did you mean "/model"?');
    chat.type('/model other\r');
    await chat.sees('other answers from now on');
    chat.type('/model\r');
    await chat.sees('* other');
    chat.type('Hello\r');
    const asked = await service.nextChat();
    expect(asked.body.model).toBe('other');
    asked.finish();
    chat.type('/help\r');
    await chat.sees('/save PATH');
    chat.type('/bye\r');
    expect(await chat.ended()).toBe(0);
  });

  test('a failure is said, and what was asked can be asked again', async () => {
    const chat = await ready({ args });
    chat.type('Hello\r');
    (await service.nextChat()).cut();
    await chat.sees(/ended before the answer did[^]*>>> /);
    chat.type('Hello\r');
    const asked = await service.nextChat();
    asked.send({ error: { message: 'The prompt has 9 tokens, and the model reads 8.' } });
    await chat.sees(/reads 8\.[^]*>>> /);
    expect(await exchange(chat, 'Hi\r')).toEqual([{ role: 'user', content: 'Hi' }]);
    chat.type(CTRL_D);
    await chat.ended();
  });

  test('what a model says commands no terminal', async () => {
    const chat = await ready({ args });
    await exchange(chat, 'Hello\r', 'a\u001b]0;owned\u0007b\u001b[2Jc');
    expect(chat.raw()).toContain('a?]0;owned?b?[2Jc');
    chat.type(CTRL_D);
    await chat.ended();
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('%s ends it at the prompt and in an answer', async (name) => {
    const idle = await ready({ args });
    idle.signal(name);
    expect(await idle.ended()).toBe(0);
    const busy = await ready({ args });
    busy.type('Hello\r');
    const asked = await service.nextChat();
    asked.say('One');
    await busy.sees('One');
    busy.signal(name);
    await asked.left;
    expect(await busy.ended()).toBe(0);
    // Pastes are no longer marked.
    expect(busy.raw().lastIndexOf('\u001b[?2004l')).toBeGreaterThan(busy.raw().lastIndexOf('\u001b[?2004h'));
  });

  test('a narrow screen, one that does not tell its width, and a dumb one', async () => {
    for (const options of [{ columns: 12 }, { columns: 0 }, { environment: { TERM: 'dumb' } }]) {
      const chat = await ready({ args, ...options });
      const message = 'a message that is longer than the screen is wide';
      expect((await exchange(chat, `${message}\r`, 'an answer that is longer as well')).at(-1)?.content).toBe(message);
      expect(chat.screen().replaceAll('\n', '')).toContain('an answer that is longer as well');
      chat.type(CTRL_D);
      expect(await chat.ended()).toBe(0);
    }
  });

  test('colours are left out where they are not wanted', async () => {
    for (const [environment, hasColour] of [
      [{}, true],
      [{ NO_COLOR: '1' }, false],
      [{ TERM: 'dumb' }, false],
    ] as const) {
      const chat = await ready({ args, environment });
      chat.type('/nothing\r');
      await chat.sees('there is no /nothing');
      // oxlint-disable-next-line no-control-regex
      expect(/\u001b\[[0-9;]*m/.test(chat.raw()), JSON.stringify(environment)).toBe(hasColour);
      chat.type(CTRL_D);
      await chat.ended();
    }
  });
});
