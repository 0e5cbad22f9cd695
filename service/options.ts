/** What the settings say, as the parts of the service take it. */
import type { InferenceSettings, SamplingSettings } from '../core/inference/local/settings.ts';
import type { AccessSettings, PairingSettings, ServerSettings } from '../gateway/settings.ts';
import type { LocalInferenceOptions } from '../core/inference/local/local-inference.ts';
import type { SamplingDefaults } from '../core/inference/local/runner/protocol.ts';
import type { GatewayOptions } from '../gateway/server.ts';
import { machineNames } from './addresses.ts';
import { packageRoot } from './package.ts';

export function callerOptions(
  settings: ServerSettings & AccessSettings & PairingSettings,
): Pick<GatewayOptions, 'guard' | 'access'> {
  return {
    guard: {
      hostnames: settings['server.hostnames'],
      allowedOrigins: settings['server.allowedOrigins'],
      appOrigin: settings['pairing.appOrigin'] ?? undefined,
      machineNames,
    },
    access: {
      requireKeyOnLoopback: settings['access.requireKeyOnLoopback'],
      requestsPerMinute: settings['access.requestsPerMinute'],
      requestsAtOnce: settings['access.requestsAtOnce'],
    },
  };
}

export function inferenceOptions(
  settings: InferenceSettings & SamplingSettings,
): Omit<LocalInferenceOptions, 'models' | 'memoryFacts' | 'onRunnerCrash'> {
  const keepLoadedMinutes = settings['inference.keepLoadedMinutes'];
  return {
    runnerEntry: new URL('dist/core/inference/local/runner/main.js', packageRoot),
    threads: settings['inference.threads'] ?? undefined,
    contextTokens: settings['inference.contextTokens'] ?? undefined,
    gpu: settings['inference.gpu'],
    sampling: samplingDefaults(settings),
    keepLoadedMs: keepLoadedMinutes === null ? undefined : keepLoadedMinutes * 60_000,
    eviction: settings['inference.evictionPolicy'],
    concurrentSessions: settings['inference.concurrentSessions'] ?? undefined,
    continuousBatching: settings['inference.continuousBatching'],
  };
}

function samplingDefaults(settings: SamplingSettings): SamplingDefaults {
  return {
    temperature: settings['sampling.temperature'] ?? undefined,
    topP: settings['sampling.topP'] ?? undefined,
    topK: settings['sampling.topK'] ?? undefined,
    minP: settings['sampling.minP'] ?? undefined,
    repetitionPenalty: settings['sampling.repetitionPenalty'] ?? undefined,
    maxTokens: settings['sampling.maxTokens'] ?? undefined,
  };
}
