/** What models there are, in Ollama's words: `GET /api/tags`, `POST /api/show`, `GET /api/ps`, `GET /api/version`. */
import { ServiceError } from '../../../core/errors.ts';
import type { Model } from '../../../core/inference/catalog.ts';
import type { ResidentModel } from '../../../core/inference/inference.ts';
import { isOwner } from '../../caller.ts';
import type { Services } from '../../route.ts';
import { ignoredHeaders } from '../../wire/ignored.ts';
import { ollama } from '../../wire/ollama/dialect.ts';
import { inferenceRoute } from '../route-classes.ts';
import { inTime } from './in-time.ts';
import {
  encodeRunning,
  encodeShow,
  encodeTag,
  parseShowRequest,
  type KnownModel,
  ollamaShowRequestSchema,
} from '../../wire/ollama/models.ts';

/**
 * The Ollama whose routes these are. Clients compare it with what they need and turn away anything older: VS Code's
 * Copilot Chat wants 0.6.4, coding agents that speak Anthropic's style to an Ollama want 0.14.2.
 */
const OLLAMA_VERSION = '0.14.2';

export const ollamaTags = inferenceRoute({
  dialect: ollama,
  method: 'GET',
  path: '/tags',
  summary: 'The installed models, in Ollama style.',
  async handle(_request, services: Pick<Services, 'catalog'>) {
    return { body: { models: (await lookUp(await services.catalog.list(), services)).map(encodeTag) } };
  },
});

export const ollamaShow = inferenceRoute({
  dialect: ollama,
  method: 'POST',
  path: '/show',
  summary: 'What is in a model, in Ollama style.',
  body: ollamaShowRequestSchema,
  async handle(
    { json },
    { catalog, inference, announcesTools }: Pick<Services, 'catalog' | 'inference' | 'announcesTools'>,
  ) {
    const asked = parseShowRequest(json());
    const model = await catalog.resolve(asked.model);
    const details = await catalog.describe(model);
    if (details === undefined) {
      throw new ServiceError('engine_failed', 'The model file cannot be read: it is damaged, or no GGUF file.');
    }
    const [tools, contextTokens] = await Promise.all([announcesTools(), inference.contextLimit(model)]);
    const body = encodeShow({ model, details, contextTokens, announcesTools: tools });
    return { headers: ignoredHeaders(asked.ignored), body };
  },
});

export const ollamaPs = inferenceRoute({
  dialect: ollama,
  method: 'GET',
  path: '/ps',
  summary: 'The loaded models, in Ollama style.',
  async handle({ caller }, services: Pick<Services, 'catalog' | 'inference' | 'now'>) {
    const { residents } = services.inference.status();
    const told = isOwner(caller) ? residents : residents.map(withoutUse).toSorted((a, b) => a.id.localeCompare(b.id));
    const known = await lookUp(
      told.map(({ model }) => model),
      services,
    );
    const models = told.flatMap(({ limitTokens, unloadsInMs }, index) => {
      const one = known[index];
      const expiresAtMs = unloadsInMs === undefined ? undefined : services.now() + unloadsInMs;
      return one === undefined ? [] : [encodeRunning(one, { contextTokens: limitTokens, expiresAtMs })];
    });
    return { body: { models } };
  },
});

export const ollamaVersion = inferenceRoute({
  dialect: ollama,
  method: 'GET',
  path: '/version',
  summary: 'The version of Ollama that these routes are like.',
  handle: (_request, { control }: Pick<Services, 'control'>) => ({
    body: { version: OLLAMA_VERSION, postern_version: control.version },
  }),
});

/** When a model was used last, and which one last of all, is what its other callers did; those who ask now are told of now. */
function withoutUse(resident: ResidentModel): ResidentModel {
  return { ...resident, unloadsInMs: resident.keepLoadedMs };
}

async function lookUp(
  models: readonly Model[],
  { catalog }: Pick<Services, 'catalog'>,
): Promise<readonly KnownModel[]> {
  const [details, digests] = await Promise.all([
    inTime(models.map((model) => catalog.describe(model))),
    inTime(models.map((model) => catalog.digest(model))),
  ]);
  return models.map((model, index) => ({ model, details: details[index], digest: digests[index] }));
}
