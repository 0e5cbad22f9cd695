/** The catalog as the settings ask for it, the same for the service and for the command line. */
import { homedir } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { ModelSettings } from '../core/inference/local/settings.ts';
import { createInstalledModels, type InstalledModels } from '../core/inference/local/installed-models.ts';
import { lmStudioModels } from '../core/inference/local/model-sources/lm-studio.ts';
import { ollamaModels } from '../core/inference/local/model-sources/ollama.ts';
import { packageRoot } from './package.ts';
import type { Start } from './start.ts';

interface ModelsContext extends Pick<Start<ModelSettings>, 'settings' | 'environment'> {
  readonly currentSettings?: Start<ModelSettings>['currentSettings'];
}

/** Without `currentSettings` a model has no name but its id. */
export function openInstalledModels({ settings, currentSettings, environment }: ModelsContext): InstalledModels {
  const userHome = homedir();
  const ollama = { userHome, modelsFolder: environment['OLLAMA_MODELS'], platform: process.platform };
  return createInstalledModels({
    modelsDir: settings['models.folder'],
    builtInPath: fileURLToPath(new URL('models/foundation/foundation.gguf', packageRoot)),
    sources: settings['models.discover'] ? [lmStudioModels(userHome), ollamaModels(ollama)] : [],
    aliases: async () => (await currentSettings?.())?.['models.aliases'] ?? {},
  });
}
