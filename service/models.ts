/** The models there are, and what answers with them. */
import { createLocalInference, type LocalInference } from '../core/inference/local/local-inference.ts';
import { createModelDetailsReader } from '../core/inference/local/model-details.ts';
import { createModelDigests } from '../core/inference/local/model-digests.ts';
import type { Services } from '../gateway/route.ts';
import type { InferenceSettings, ModelSettings, SamplingSettings } from '../core/inference/local/settings.ts';
import { openModelCatalog } from './model-catalog.ts';
import { inferenceOptions } from './options.ts';
import type { Start } from './start.ts';
import type { Storage } from './storage.ts';

export interface Models extends Pick<Services, 'catalog' | 'modelDetails' | 'modelDigests'> {
  readonly inference: LocalInference;
}

export function openModels(
  { settings, environment, say, onClose }: Start<ModelSettings & InferenceSettings & SamplingSettings>,
  { database }: Storage,
): Models {
  const catalog = openModelCatalog(settings, environment);
  const modelDetails = createModelDetailsReader({ database });
  const modelDigests = createModelDigests({ database });
  onClose(() => modelDigests.close());
  const inference = createLocalInference({
    ...inferenceOptions(settings),
    catalog,
    memoryFacts: async (model) => (await modelDetails.read(model))?.memory,
    onRunnerCrash: say,
  });
  onClose(() => inference.close());
  return { catalog, modelDetails, modelDigests, inference };
}
