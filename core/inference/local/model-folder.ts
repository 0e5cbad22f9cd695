/** The models folder: the files in it are ours to change, all others are somebody else's. */
import { constants } from 'node:fs';
import { copyFile, link, lstat, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { removeEmptyFolders } from '../../download/empty-folders.ts';
import { ServiceError } from '../../errors.ts';
import type { LocalModel } from '../catalog.ts';
import type { ModelFolder } from '../model-folder.ts';
import { modelFiles } from './model-files.ts';

export function createModelFolder(folder: string): ModelFolder {
  return {
    async remove(model) {
      const refusal = removalRefusal(model);
      if (refusal !== undefined) throw new ServiceError('unsupported', refusal);
      await removeModelFiles(model);
      await removeEmptyFolders(dirname(model.path), folder);
    },
    async copy({ path, id, origin }, name) {
      if (origin === 'lm-studio') throw new ServiceError('unsupported', `"${id}" belongs to LM Studio. ${USE_ALIAS}`);
      await mkdir(folder, { recursive: true });
      for (const file of modelFiles(path)) await linkOrCopy(file, join(folder, `${name}${suffixOf(file)}`));
    },
  };
}

const USE_ALIAS = 'Give it another name with "postern models alias".';

/** Why a model is not ours to remove, and the way to do it; undefined where it is. */
export function removalRefusal({ id, origin }: LocalModel): string | undefined {
  switch (origin) {
    case 'folder':
      return undefined;
    case 'built-in':
      return `"${id}" is a part of Postern and stays.`;
    case 'lm-studio':
      return `"${id}" belongs to LM Studio: remove it there, under My Models.`;
    case 'ollama':
      return `"${id}" belongs to Ollama: "ollama rm ${id}" removes it.`;
  }
}

/** @returns the bytes that this gives back: those of a file that has another name, too, or was only linked, are none */
export async function removeModelFiles({ path }: LocalModel): Promise<number> {
  let freed = 0;
  for (const file of modelFiles(path)) {
    const found = await lstat(file).catch(() => undefined);
    await rm(file, { force: true });
    if (found?.isFile() === true && found.nlink === 1) freed += found.size;
  }
  return freed;
}

/** `.gguf`, with what says which part it is. A file of another app's may be named otherwise. */
function suffixOf(file: string): string {
  return /(?:-\d{5}-of-\d{5})?\.gguf$/.exec(file)?.[0] ?? '.gguf';
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch {
    // On another disk, or one that knows no links.
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  }
}
