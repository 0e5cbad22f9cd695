/** `POST /api/chat` and `POST /api/generate`, Ollama's two ways to ask a model. */
import { inTurns, type Steps } from '../../../core/steps.ts';
import { PUBLIC_BODY_BYTES } from '../../bounds.ts';
import { isOwner } from '../../caller.ts';
import type { GatewayRequest, Reply, Route, Services } from '../../route.ts';
import { ignoredHeaders } from '../../wire/ignored.ts';
import { ndjson } from '../../wire/ndjson.ts';
import {
  parseChatRequest,
  parseGenerateRequest,
  type OllamaRequest,
  ollamaChatRequestSchema,
  ollamaGenerateRequestSchema,
} from '../../wire/ollama/request.ts';
import {
  encodeOllamaResponse,
  encodeOllamaStream,
  encodeResidency,
  type OllamaClock,
  type OllamaRoute,
} from '../../wire/ollama/response.ts';

export const ollamaChat: Route = {
  method: 'POST',
  path: '/chat',
  access: 'inference',
  maxBodyBytes: PUBLIC_BODY_BYTES,
  clientPrefix: '/api',
  summary: 'Ollama chat.',
  body: ollamaChatRequestSchema,
  handle: (request, services) => answer({ route: 'chat', asked: parseChatRequest(request.json()) }, request, services),
};

export const ollamaGenerate: Route = {
  method: 'POST',
  path: '/generate',
  access: 'inference',
  maxBodyBytes: PUBLIC_BODY_BYTES,
  clientPrefix: '/api',
  summary: 'Ollama generate.',
  body: ollamaGenerateRequestSchema,
  handle: (request, services) =>
    answer({ route: 'generate', asked: parseGenerateRequest(request.json()) }, request, services),
};

interface Asked {
  readonly route: OllamaRoute;
  readonly asked: Steps<OllamaRequest>;
}

async function answer({ route, asked }: Asked, { caller, signal }: GatewayRequest, services: Services): Promise<Reply> {
  const clock = startClock(services);
  const ask = await inTurns(asked);
  const isUnload = ask.task === 'unload';
  const envelope = () => ({ route, model: ask.model, clock, loadDuration: clock.elapsed() });
  // Others may use the model as well: that it goes is for the owner to say.
  const mayUnload = isOwner(caller);
  // What is to be unloaded may have lost its file.
  const { id } = isUnload && mayUnload ? { id: ask.model } : await services.catalog.resolve(ask.model);
  const headers = ignoredHeaders([...ask.ignored, ...(isUnload && !mayUnload ? ['keep_alive'] : [])]);
  if (ask.task !== 'answer') {
    if (ask.task === 'load') await load(id, signal, services);
    else if (mayUnload) await services.inference.unload(id);
    const reason = isUnload && !mayUnload ? 'stop' : ask.task;
    return { headers, body: encodeResidency(envelope(), reason) };
  }
  const model = await services.inference.languageModel(id);
  const { stream } = await model.doStream({ ...ask.call, abortSignal: signal });
  if (!ask.stream) return { headers, body: await encodeOllamaResponse(envelope(), stream) };
  return { headers: { ...headers, ...ndjson.headers }, body: encodeOllamaStream(envelope(), stream) };
}

function startClock({ now }: Services): OllamaClock {
  const startedAt = process.hrtime.bigint();
  return { now, elapsed: () => Number(process.hrtime.bigint() - startedAt) };
}

/** Counting the tokens of nothing needs the model, and nothing else. */
async function load(id: string, signal: AbortSignal, { inference }: Services): Promise<void> {
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: '' }] }];
  await inference.countPromptTokens(id, { prompt, abortSignal: signal });
}
