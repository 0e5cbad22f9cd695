/** What can be said in a chat besides messages: `/help` and its like. */
import { writeFile } from 'node:fs/promises';
import { CommandError, type CommandContext } from '../command.ts';
import { requireLiveServer } from '../live-server.ts';
import { didYouMean } from '../did-you-mean.ts';
import { unwritable } from '../unwritable.ts';
import { chooseModel, modelIds } from './choose-model.ts';
import {
  cleared,
  findConversation,
  formatConversation,
  systemOf,
  withSystem,
  type Conversation,
} from './conversation.ts';
import { decodeText, readBounded, readFilePart, withHome } from './prompt-text.ts';

/** What a chat is at the moment. */
export interface Chat {
  conversation: Conversation;
  /** Stands before the next message. */
  attached: string;
  hasLeft: boolean;
}

interface ChatCommand {
  /** What comes after its name, as the help says it. */
  readonly argument?: string;
  readonly summary: string;
  /** @throws {CommandError} */
  run(chat: Chat, argument: string, context: CommandContext): void | Promise<void>;
}

const COMMANDS: ReadonlyMap<string, ChatCommand> = new Map<string, ChatCommand>([
  ['/help', { summary: 'this list', run: help }],
  ['/model', { argument: '[NAME]', summary: 'say which model answers, or take another', run: model }],
  ['/system', { argument: '[TEXT|off]', summary: 'what the model is told before all else', run: system }],
  ['/file', { argument: 'PATH', summary: 'put a text file before your next message', run: file }],
  ['/clear', { summary: 'forget what was said', run: clear }],
  ['/save', { argument: 'PATH', summary: 'write the conversation into a new file', run: save }],
  ['/load', { argument: 'PATH', summary: 'go on with one that was saved', run: load }],
  ['/exit', { summary: 'leave, as Ctrl-D does', run: leave }],
]);

/** `/etc/hosts is ...` is none, and nothing that does not begin with `/` at once. */
export function isChatCommand(message: string): boolean {
  return /^\/[a-z?]*(\s|$)/i.test(message);
}

/** @throws {CommandError} where there is none of this name */
export function findChatCommand(message: string): { run(chat: Chat, context: CommandContext): void | Promise<void> } {
  const [, given = '', argument = ''] = /^(\S+)\s*([^]*)$/.exec(message) ?? [];
  const name = ALIASES.get(given) ?? given;
  const command = COMMANDS.get(name);
  if (command === undefined)
    throw new CommandError(`there is no ${given}.${didYouMean(given, COMMANDS.keys())} /help lists what there is.`);
  return { run: (chat, context) => command.run(chat, argument.trim(), context) };
}

/** As other programs call them. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['/?', '/help'],
  ['/bye', '/exit'],
  ['/quit', '/exit'],
]);

function help(_chat: Chat, _argument: string, { terminal }: CommandContext): void {
  const rows = [...COMMANDS].map(([name, { argument = '', summary }]) => [`${name} ${argument}`, summary] as const);
  const width = Math.max(...rows.map(([left]) => left.length));
  terminal.say(
    [
      ...rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`),
      '',
      '  """ begins and ends a message of several lines; so does a backslash at the end of a line.',
      '  Ctrl-C stops an answer. The arrow keys bring back what you typed, for as long as this chat lasts.',
      '  A message that begins with "/": put a blank before it.',
    ].join('\n'),
  );
}

async function model(chat: Chat, wanted: string, { terminal, home }: CommandContext): Promise<void> {
  const server = await requireLiveServer(home);
  if (wanted === '') {
    for (const id of await modelIds(server)) terminal.say(`${id === chat.conversation.model ? '*' : ' '} ${id}`);
    return;
  }
  chat.conversation = { ...chat.conversation, model: await chooseModel(server, wanted) };
  terminal.say(`${chat.conversation.model} answers from now on.`);
}

function system(chat: Chat, text: string, { terminal }: CommandContext): void {
  if (text === '') return terminal.say(systemOf(chat.conversation) ?? 'The model is told nothing.');
  chat.conversation = withSystem(chat.conversation, text === 'off' ? undefined : text);
  terminal.say(text === 'off' ? 'The model is told nothing from now on.' : 'The model is told this from now on.');
}

async function file(chat: Chat, path: string, { terminal }: CommandContext): Promise<void> {
  const part = await readFilePart(required(path));
  chat.attached += part;
  terminal.say(`${path} goes with your next message (${part.length.toLocaleString('en')} characters).`);
}

function clear(chat: Chat, _argument: string, { terminal }: CommandContext): void {
  chat.conversation = cleared(chat.conversation);
  chat.attached = '';
  terminal.say('Forgotten.');
}

/** For its owner alone, and never over a file that is there. */
async function save({ conversation }: Chat, path: string, { terminal }: CommandContext): Promise<void> {
  const target = withHome(required(path));
  await writeFile(target, formatConversation(conversation), { mode: 0o600, flag: 'wx' }).catch((cause: unknown) => {
    throw unwritable(target, cause);
  });
  terminal.say(`Saved in ${path}, for you alone to read. "/load ${path}" goes on with it.`);
}

async function load(chat: Chat, path: string, { terminal }: CommandContext): Promise<void> {
  const loaded = findConversation(decodeText(await readBounded(withHome(required(path))), path));
  if (loaded === undefined) throw new CommandError(`${path} is no conversation that "/save" wrote.`);
  chat.conversation = loaded;
  terminal.say(`${loaded.messages.length} messages, with ${loaded.model}.`);
}

function leave(chat: Chat): void {
  chat.hasLeft = true;
}

function required(path: string): string {
  if (path === '') throw new CommandError('say which file.');
  return path;
}
