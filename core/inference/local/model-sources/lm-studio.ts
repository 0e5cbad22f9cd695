/**
 * The models that LM Studio downloaded: `<models folder>/<publisher>/<repository>/<file>.gguf`.
 *
 * Its folders, as its own command line finds them (`findLMStudioHome` and `resolveModelsFolderPath`, in the public
 * repositories lmstudio-ai/lmstudio-js and lmstudio-ai/lms): the home is what `~/.lmstudio-home-pointer` says, else
 * `~/.cache/lm-studio` of older versions, else `~/.lmstudio`; the models are in its `models`, or where `downloadsFolder`
 * in its `settings.json` says. All of them are looked at: whoever updated may have models in several.
 */
import { isAbsolute, join } from 'node:path';
import * as z from 'zod';
import { findGgufModels } from './gguf-folder.ts';
import type { ModelSource } from './model-source.ts';
import { readSmallFile, readSmallJson } from './small-file.ts';

const settingsSchema = z.looseObject({ downloadsFolder: z.string().refine(isAbsolute) });

/** @param userHome the user's own home folder */
export function lmStudioModels(userHome: string): ModelSource {
  return {
    origin: 'lm-studio',
    async find() {
      const homes = [...(await pointedHome(userHome)), join(userHome, '.lmstudio'), join(userHome, '.cache/lm-studio')];
      const folders = (await Promise.all(homes.map(modelFolders))).flat();
      return (await Promise.all([...new Set(folders)].map(findGgufModels))).flat();
    },
  };
}

async function pointedHome(userHome: string): Promise<readonly string[]> {
  const home = (await readSmallFile(join(userHome, '.lmstudio-home-pointer')))?.trim();
  return home !== undefined && isAbsolute(home) ? [home] : [];
}

async function modelFolders(home: string): Promise<readonly string[]> {
  const settings = settingsSchema.safeParse(await readSmallJson(join(home, 'settings.json')));
  return [join(home, 'models'), ...(settings.success ? [settings.data.downloadsFolder] : [])];
}
