import type { SettingRow } from '../../core/config/settings.ts';
import { isLiveSetting, isSettingName, parseSettingText, readSettings } from '../../service/settings.ts';
import { UsageError, type Command, type CommandContext, type ExitCode } from '../command.ts';
import { findLiveServer } from '../live-server.ts';
import { changeSetting } from '../recorded-setting.ts';

export const settings: Command = {
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
  async run({ flags, positionals: [action, name, ...values] }, context) {
    const asJson = flags['json'] === true;
    switch (action) {
      case undefined:
      case 'list':
        return list(asJson, context);
      case 'get':
        return get(required(name, 'which setting?'), asJson, context);
      case 'set':
        if (values.length === 0) throw new UsageError('set to what? Give the value after the name.');
        return set(required(name, 'which setting?'), values.join(' '), context);
      case 'unset':
        return set(required(name, 'which setting?'), undefined, context);
      default:
        throw new UsageError('say "list", "get", "set" or "unset".');
    }
  },
};

function required(value: string | undefined, question: string): string {
  if (value === undefined) throw new UsageError(question);
  return value;
}

async function readRows(context: CommandContext): Promise<readonly SettingRow[]> {
  return (await readSettings(context)).rows;
}

async function list(asJson: boolean, context: CommandContext): Promise<ExitCode> {
  const rows = await readRows(context);
  const { terminal } = context;
  if (asJson) terminal.print(JSON.stringify(rows));
  else
    for (const row of rows)
      terminal.print(`${row.name} = ${JSON.stringify(row.value)}  (${row.source}) ${row.meaning}`);
  return 0;
}

async function get(name: string, asJson: boolean, context: CommandContext): Promise<ExitCode> {
  const row = (await readRows(context)).find((one) => one.name === name);
  if (row === undefined) throw unknownSetting(name);
  context.terminal.print(typeof row.value === 'string' && !asJson ? row.value : JSON.stringify(row.value));
  return 0;
}

async function set(name: string, text: string | undefined, context: CommandContext): Promise<ExitCode> {
  const { terminal, home } = context;
  if (!isSettingName(name)) throw unknownSetting(name);
  await changeSetting(context, name, text === undefined ? undefined : parseSettingText(name, text));
  if ((await findLiveServer(home)) === undefined) terminal.say('Saved.');
  else if (isLiveSetting(name)) terminal.say('Saved. The running service knows it.');
  else terminal.say('Saved. The running service takes it on when it starts next ("postern stop", then serve).');
  return 0;
}

function unknownSetting(name: string): UsageError {
  return new UsageError(`there is no setting "${name}". "postern settings list" shows them all.`);
}
