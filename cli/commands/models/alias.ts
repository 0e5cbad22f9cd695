import { readSettings } from '../../../service/settings.ts';
import { CommandError, UsageError, type CommandContext, type CommandInput, type ExitCode } from '../../command.ts';
import { findLiveServer } from '../../live-server.ts';
import { changeSetting } from '../../recorded-setting.ts';
import { table } from '../../table.ts';
import { resolveModel, withModels } from './open-models.ts';

/** Shows the names that stand for models, gives a model one more, or takes one away. */
export async function aliasModel({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const [name, id, ...more] = positionals;
  if (more.length > 0) throw new UsageError(`one name at a time: what is "${more.join(' ')}"?`);
  if (name === undefined) return show(flags['json'] === true, context);
  if (flags['remove'] === true) return remove(name, context);
  if (id === undefined) throw new UsageError(`which model is to answer to "${name}"? Give its id after the name.`);
  return add({ name, id }, context);
}

async function aliasesIn(context: CommandContext): Promise<Readonly<Record<string, string>>> {
  const { settings } = await readSettings(context);
  return settings['models.aliases'];
}

async function show(asJson: boolean, context: CommandContext): Promise<ExitCode> {
  const { terminal } = context;
  const aliases = await aliasesIn(context);
  const rows = Object.entries(aliases);
  if (asJson) terminal.print(JSON.stringify(aliases));
  else if (rows.length === 0)
    terminal.say('Every model answers to its own id only. To give one another name: postern models alias <name> <id>');
  else for (const line of table(['NAME', 'MODEL'], rows)) terminal.print(line);
  return 0;
}

async function remove(name: string, context: CommandContext): Promise<ExitCode> {
  const aliases = await aliasesIn(context);
  const { [name]: id, ...others } = aliases;
  if (!Object.hasOwn(aliases, name)) {
    throw new CommandError(`"${name}" stands for no model. "postern models alias" shows those there are.`);
  }
  await changeSetting(context, 'models.aliases', others);
  context.terminal.say(`"${name}" no longer stands for ${id}.`);
  return 0;
}

async function add(alias: { readonly name: string; readonly id: string }, context: CommandContext): Promise<ExitCode> {
  const { terminal, home } = context;
  const { model, namesake } = await withModels(context, async ({ catalog }) => ({
    model: await resolveModel(catalog, alias.id),
    namesake: await catalog.resolve(alias.name).catch(() => undefined),
  }));
  if (namesake !== undefined) {
    throw new CommandError(`"${alias.name}" is the id of a model itself, which goes before every other name.`);
  }
  const aliases = { ...(await aliasesIn(context)), [alias.name]: model.id };
  await changeSetting(context, 'models.aliases', aliases);
  const who = alias.name === '*' ? 'Every name that no model has' : `"${alias.name}"`;
  terminal.say(`${who} stands for ${model.id}.`);
  if ((await findLiveServer(home)) !== undefined) terminal.say('The running service knows it.');
  return 0;
}
