/** `POST /api/chat` and `POST /api/generate`, Ollama's two ways to ask a model. */
import type { ModelCatalog } from '../../../core/inference/catalog.ts';
import type { Inference } from '../../../core/inference/inference.ts';
import type { ModelCall } from '../../../core/inference/model-port.ts';
import { inTurns, type Steps } from '../../../core/steps.ts';
import { isOwner } from '../../caller.ts';
import type { GatewayRequest, Reply, Services } from '../../route.ts';
import { ignoredHeaders } from '../../wire/ignored.ts';
import { ollama } from '../../wire/ollama/dialect.ts';
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
  type OllamaEnvelope,
  type OllamaRoute,
} from '../../wire/ollama/response.ts';
import { chatRoute, type ModelRequest } from './chat-route.ts';

interface Needs extends Pick<Services, 'now'> {
  readonly inference: Pick<Inference, 'countPromptTokens' | 'unload'>;
  readonly catalog: Pick<ModelCatalog, 'resolve'>;
}

export const ollamaChat = chatRoute({
  dialect: ollama,
  path: '/chat',
  summary: 'Ollama chat.',
  body: ollamaChatRequestSchema,
  read: (request, services: Needs) => read({ route: 'chat', parse: parseChatRequest }, request, services),
});

export const ollamaGenerate = chatRoute({
  dialect: ollama,
  path: '/generate',
  summary: 'Ollama generate.',
  body: ollamaGenerateRequestSchema,
  read: (request, services: Needs) => read({ route: 'generate', parse: parseGenerateRequest }, request, services),
});

interface OneRoute {
  readonly route: OllamaRoute;
  readonly parse: (json: unknown) => Steps<OllamaRequest>;
}

async function read(
  { route, parse }: OneRoute,
  request: GatewayRequest,
  services: Needs,
): Promise<ModelRequest | Reply> {
  const clock = startClock(services);
  const ask = await inTurns(parse(request.json()));
  const envelope = (): OllamaEnvelope => ({ route, model: ask.model, clock, loadDuration: clock.elapsed() });
  if (ask.task !== 'answer') {
    const done = await changeResidency(ask, request, services);
    const headers = ignoredHeaders([...ask.ignored, ...(done === 'stop' ? ['keep_alive'] : [])]);
    return { headers, body: encodeResidency(envelope(), done) };
  }
  const { id } = await services.catalog.resolve(ask.model);
  return {
    ...ask,
    model: id,
    headers: ignoredHeaders(ask.ignored),
    timedAnswer() {
      const said = envelope();
      return {
        whole: (parts) => encodeOllamaResponse(said, parts),
        stream: (parts) => encodeOllamaStream(said, parts),
      };
    },
  };
}

interface ResidencyChange {
  readonly model: string;
  readonly task: 'load' | 'unload';
}

/** @returns what was done; `stop` is nothing: others may use the model as well, and that it goes is for the owner to say */
async function changeResidency(
  { model, task }: ResidencyChange,
  { caller, signal }: GatewayRequest,
  { catalog, inference }: Needs,
): Promise<ResidencyChange['task'] | 'stop'> {
  if (task === 'unload' && isOwner(caller)) {
    // Its file may be gone.
    await inference.unload(model);
    return task;
  }
  const { id } = await catalog.resolve(model);
  if (task === 'unload') return 'stop';
  // Counting the tokens of nothing needs the model, and nothing else.
  await inference.countPromptTokens(id, { prompt: NOTHING, abortSignal: signal });
  return task;
}

const NOTHING: ModelCall['prompt'] = [{ role: 'user', content: [{ type: 'text', text: '' }] }];

function startClock({ now }: Pick<Services, 'now'>): OllamaClock {
  const startedAt = process.hrtime.bigint();
  return { now, elapsed: () => Number(process.hrtime.bigint() - startedAt) };
}
