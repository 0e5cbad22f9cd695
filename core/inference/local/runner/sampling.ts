/**
 * Who decides how tokens are drawn: the request, then the owner's settings, then the model's own file, then the wire
 * style of the request, then the engine. Pure.
 */
import { isRecord } from '../../../json.ts';
import { modelOptionsOf } from '../../model-port.ts';
import type { GenerateRequest, SamplingDefaults } from './protocol.ts';

export interface Sampling {
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly repetitionPenalty: number;
}

/** What llama.cpp's own tools use where nothing is said. */
const ENGINE_DEFAULTS: Sampling = { temperature: 0.8, topP: 0.95, topK: 40, minP: 0.05, repetitionPenalty: 1 };

export function resolveSampling(
  request: GenerateRequest,
  settings: SamplingDefaults,
  bundle: SamplingDefaults,
): Sampling {
  const options = modelOptionsOf(request);
  const defaults = ENGINE_DEFAULTS;
  const styleTemperature = options.styleDefaults?.temperature;
  return {
    temperature:
      request.temperature ?? settings.temperature ?? bundle.temperature ?? styleTemperature ?? defaults.temperature,
    topP: request.topP ?? settings.topP ?? bundle.topP ?? defaults.topP,
    topK: request.topK ?? settings.topK ?? bundle.topK ?? defaults.topK,
    minP: options.minP ?? settings.minP ?? bundle.minP ?? defaults.minP,
    repetitionPenalty:
      options.repetitionPenalty ?? settings.repetitionPenalty ?? bundle.repetitionPenalty ?? defaults.repetitionPenalty,
  };
}

/** The `general.sampling.*` keys of a GGUF file, where its maker wrote any. */
export function bundleSampling(metadata: unknown): SamplingDefaults {
  const general = isRecord(metadata) && isRecord(metadata['general']) ? metadata['general'] : {};
  const sampling = isRecord(general['sampling']) ? general['sampling'] : {};
  const found = {
    temperature: sampling['temp'],
    topP: sampling['top_p'],
    topK: sampling['top_k'],
    minP: sampling['min_p'],
    repetitionPenalty: sampling['penalty_repeat'],
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => typeof value === 'number'));
}
