/** The models there are, and what answers with them. */
import type { ModelCatalog } from '../core/inference/catalog.ts';
import { createLocalInference, type LocalInference } from '../core/inference/local/local-inference.ts';
import { createModelDetailsReader } from '../core/inference/local/model-details.ts';
import { createModelFolder } from '../core/inference/local/model-folder.ts';
import { createModelDigests } from '../core/inference/local/model-digests.ts';
import type { Services } from '../gateway/route.ts';
import type { InferenceSettings, ModelSettings, SamplingSettings } from '../core/inference/local/settings.ts';
import { openInstalledModels } from './installed-models.ts';
import { inferenceOptions } from './options.ts';
import type { Start } from './start.ts';
import type { Storage } from './storage.ts';

export interface Models extends Pick<Services, 'catalog' | 'modelFolder'> {
  readonly inference: LocalInference;
}

export function openModels(
  start: Start<ModelSettings & InferenceSettings & SamplingSettings>,
  { database }: Storage,
): Models {
  const { settings, say, onClose } = start;
  const models = openInstalledModels(start);
  const modelDetails = createModelDetailsReader({ database });
  const modelDigests = createModelDigests({ database });
  onClose(() => modelDigests.close());
  const inference = createLocalInference({
    ...inferenceOptions(settings),
    models,
    memoryFacts: async (model) => (await modelDetails.read(model))?.memory,
    onRunnerCrash: say,
  });
  onClose(() => inference.close());
  const catalog: ModelCatalog = {
    ...models,
    describe: (model) => modelDetails.read(model),
    digest: (model) => modelDigests.find(model),
  };
  return { catalog, inference, modelFolder: createModelFolder(settings['models.folder']) };
}
