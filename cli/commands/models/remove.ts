import { dirname } from 'node:path';
import type { LocalModel } from '../../../core/inference/catalog.ts';
import { removalRefusal, removeModelFiles } from '../../../core/inference/local/model-folder.ts';
import { CommandError, type CommandContext, type CommandInput, type ExitCode } from '../../command.ts';
import { confirm } from '../../confirm.ts';
import { explainDiskError } from '../../disk-error.ts';
import { formatBytes } from '../../format-bytes.ts';
import { findLiveServer } from '../../live-server.ts';
import { removeEmptyFolders } from '../../../core/download/empty-folders.ts';
import { onlyArgument, resolveModel, withModels } from './open-models.ts';

export async function removeModel({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { terminal, home } = context;
  const id = onlyArgument(positionals, 'remove which model?');
  const { model, folder } = await withModels(context, async ({ catalog, settings }) => ({
    model: await resolveModel(catalog, id),
    folder: settings['models.folder'],
  }));
  const refusal = removalRefusal(model);
  if (refusal !== undefined) throw new CommandError(refusal);
  const question = `Remove ${model.id} (${formatBytes(model.sizeBytes)}, ${model.path})?`;
  if (!(await confirm({ question, isSure: flags['yes'] === true }, terminal))) {
    terminal.say('Nothing was removed.');
    return 1;
  }
  const isLoaded = await isResident(model, home);
  const freedBytes = await removeModelFiles(model).catch((error: unknown) => {
    throw explainDiskError(error, dirname(model.path));
  });
  terminal.say(`Removed ${model.id}: ${formatBytes(freedBytes)} freed.`);
  await removeEmptyFolders(dirname(model.path), folder);
  if (isLoaded) terminal.say('The running service has it loaded, and keeps the space until it unloads it.');
  return 0;
}

async function isResident({ id }: LocalModel, home: string): Promise<boolean> {
  const server = await findLiveServer(home);
  const status = await server?.ask('GET', 'status').catch(() => undefined);
  const residents: unknown = status?.['resident_models'];
  return Array.isArray(residents) && residents.includes(id);
}
