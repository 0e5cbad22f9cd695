import { rmdir } from 'node:fs/promises';
import { dirname, sep } from 'node:path';

/** Upwards to the models folder, which stays; the first that holds anything else ends it. */
export async function removeEmptyFolders(from: string, modelsFolder: string): Promise<void> {
  for (let folder = from; folder.startsWith(modelsFolder + sep); folder = dirname(folder)) {
    const isRemoved = await rmdir(folder).then(
      () => true,
      () => false,
    );
    if (!isRemoved) return;
  }
}
