import { lstat, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { LocalModel } from '../../../core/inference/catalog.ts';
import { modelFiles } from '../../../core/inference/local/model-files.ts';
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
  refuseForeign(model);
  const question = `Remove ${model.id} (${formatBytes(model.sizeBytes)}, ${model.path})?`;
  if (!(await confirm({ question, isSure: flags['yes'] === true }, terminal))) {
    terminal.say('Nothing was removed.');
    return 1;
  }
  const isLoaded = await isResident(model, home);
  const freedBytes = await removeFiles(model).catch((error: unknown) => {
    throw explainDiskError(error, dirname(model.path));
  });
  terminal.say(`Removed ${model.id}: ${formatBytes(freedBytes)} freed.`);
  await removeEmptyFolders(dirname(model.path), folder);
  if (isLoaded) terminal.say('The running service has it loaded, and keeps the space until it unloads it.');
  return 0;
}

/** @throws {CommandError} for what is not ours to remove, with the way to do it */
function refuseForeign({ id, origin }: LocalModel): void {
  switch (origin) {
    case 'folder':
      return;
    case 'built-in':
      throw new CommandError(`"${id}" is a part of Postern and stays.`);
    case 'lm-studio':
      throw new CommandError(`"${id}" belongs to LM Studio: remove it there, under My Models.`);
    case 'ollama':
      throw new CommandError(`"${id}" belongs to Ollama: "ollama rm ${id}" removes it.`);
  }
}

/** @returns the bytes that this gives back: those of a file that has another name, too, or was only linked, are none */
async function removeFiles({ path }: LocalModel): Promise<number> {
  let freed = 0;
  for (const file of modelFiles(path)) {
    const found = await lstat(file).catch(() => undefined);
    await rm(file, { force: true });
    if (found?.isFile() === true && found.nlink === 1) freed += found.size;
  }
  return freed;
}

async function isResident({ id }: LocalModel, home: string): Promise<boolean> {
  const server = await findLiveServer(home);
  const status = await server?.ask('GET', 'status').catch(() => undefined);
  const residents: unknown = status?.['resident_models'];
  return Array.isArray(residents) && residents.includes(id);
}
