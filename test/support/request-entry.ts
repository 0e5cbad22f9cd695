/** An entry of the request log, with only what a test is about said. */
import type { InferenceEntry, RequestEntry } from '../../gateway/request-log/request-entry.ts';

const noInference: InferenceEntry = {
  model: undefined,
  requestedModel: undefined,
  finishReason: undefined,
  inputTokens: undefined,
  cachedTokens: undefined,
  outputTokens: undefined,
  firstTokenMs: undefined,
  generationMs: undefined,
  tokensPerSecond: undefined,
};

export function requestEntry({
  inference = {},
  ...more
}: Partial<Omit<RequestEntry, 'inference'>> & { readonly inference?: Partial<InferenceEntry> } = {}): RequestEntry {
  return {
    startedAtMs: 1_700_000_000_000,
    durationMs: 10,
    source: 'http',
    method: 'GET',
    path: '/v1/models',
    route: '/models',
    status: 200,
    errorCode: undefined,
    errorMessage: undefined,
    caller: 'loopback',
    userAgent: 'curl/8',
    requestId: 'r',
    requestBody: undefined,
    responseBody: undefined,
    ...more,
    inference: { ...noInference, ...inference },
  };
}
