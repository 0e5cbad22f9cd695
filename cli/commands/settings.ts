import type { SettingRow } from '../../core/config/settings.ts';
import {
  isLiveSetting,
  isSettingName,
  parseSettingText,
  readSettings,
  settingNames,
  type SettingName,
} from '../../service/settings.ts';
import { noun, refuseMore } from '../actions.ts';
import { UsageError, type Command, type CommandContext, type CommandInput, type ExitCode } from '../command.ts';
import { didYouMean } from '../did-you-mean.ts';
import { findLiveServer } from '../live-server.ts';
import { changeSetting } from '../recorded-setting.ts';
import { printList } from '../print-list.ts';

export const settings: Command = noun({
  name: 'settings',
  summary: 'show and change settings',
  usage: `Usage: postern settings [list] [--json]
       postern settings get <name> [--json]
       postern settings set <name> <value>
       postern settings unset <name>

A value comes from a flag of "serve", else from the environment, else from settings.json, else from the default.
Most changes take effect when the service starts next; "set" says so. The audit log is told which setting was changed, not its value.

Example:
  postern settings set server.port 4001
`,
  options: { json: { type: 'boolean' } },
  actions: {
    list: { options: ['json'], run: list },
    get: { options: ['json'], words: settingNames, run: get },
    set: { options: [], words: settingNames, run: set },
    unset: { options: [], words: settingNames, run: unset },
  },
  usual: 'list',
});

async function readRows(context: CommandContext): Promise<readonly SettingRow[]> {
  return (await readSettings(context)).rows;
}

async function list({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  const heads = ['NAME', 'VALUE', 'FROM', 'MEANING'];
  printList(context.terminal, await readRows(context), { asJson: flags['json'] === true, heads, cells });
  return 0;
}

function cells({ name, value, source, meaning }: SettingRow): readonly string[] {
  return [name, JSON.stringify(value), source, meaning];
}

async function get({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const name = nameIn(positionals);
  refuseMore(positionals.slice(1));
  const { value } = (await readRows(context)).find((one) => one.name === name) ?? {};
  context.terminal.print(typeof value === 'string' && flags['json'] !== true ? value : JSON.stringify(value));
  return 0;
}

async function set({ positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const name = nameIn(positionals);
  const text = positionals.slice(1).join(' ');
  if (positionals.length < 2) throw new UsageError('set to what? Give the value after the name.');
  await changeSetting(context, name, parseSettingText(name, text));
  return saved(name, context);
}

async function unset({ positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const name = nameIn(positionals);
  refuseMore(positionals.slice(1));
  await changeSetting(context, name, undefined);
  return saved(name, context);
}

async function saved(name: SettingName, { terminal, home }: CommandContext): Promise<ExitCode> {
  if ((await findLiveServer(home)) === undefined) terminal.say('Saved.');
  else if (isLiveSetting(name)) terminal.say('Saved. The running service knows it.');
  else terminal.say('Saved. The running service takes it on when it starts next ("postern stop", then serve).');
  return 0;
}

/** @throws {UsageError} for none, and for one that there is not */
function nameIn([name]: readonly string[]): SettingName {
  if (name === undefined) throw new UsageError('which setting?');
  if (isSettingName(name)) return name;
  throw new UsageError(
    `there is no setting "${name}".${didYouMean(name, settingNames)} "postern settings list" shows them all.`,
  );
}
