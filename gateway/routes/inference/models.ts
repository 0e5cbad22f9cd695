/** The models there are: `GET /v1/models`, `GET /v1/models/{id}`. */
import type { Model } from '../../../core/inference/catalog.ts';
import type { GatewayRequest, Services } from '../../route.ts';
import { ANTHROPIC_VERSION } from '../../wire/anthropic/dialect.ts';
import { encodeModelInfo, encodeModelPage } from '../../wire/anthropic/models.ts';
import { openai } from '../../wire/openai/dialect.ts';
import { inferenceRoute } from '../route-classes.ts';
import { inTime } from './in-time.ts';

export const listModels = inferenceRoute({
  dialect: openai,
  method: 'GET',
  path: '/models',
  summary: 'The installed models, in OpenAI style; with the header anthropic-version in Anthropic style.',
  async handle({ headers, query }, { catalog, inference }: Pick<Services, 'catalog' | 'inference'>) {
    const models = await catalog.list();
    const limits = await inTime(models.map((model) => inference.contextLimit(model)));
    const listed = models.map((model, index) => ({ ...model, contextTokens: limits[index] }));
    if (isAnthropic(headers)) return { body: encodeModelPage(listed, query) };
    return { body: { object: 'list', data: listed.map(encodeModel) } };
  },
});

export const getModel = inferenceRoute({
  dialect: openai,
  method: 'GET',
  path: '/models/*',
  summary: 'One installed model, in OpenAI style; with the header anthropic-version in Anthropic style.',
  async handle({ headers, params }, { catalog, inference }: Pick<Services, 'catalog' | 'inference'>) {
    const model = await catalog.resolve(params['*'] ?? '');
    const listed = { ...model, contextTokens: await inference.contextLimit(model) };
    return { body: isAnthropic(headers) ? encodeModelInfo(listed) : encodeModel(listed) };
  },
});

/** Its clients look for models at the same address, and can't read OpenAI's. */
function isAnthropic(headers: GatewayRequest['headers']): boolean {
  return headers[ANTHROPIC_VERSION] !== undefined;
}

/** Where a model came from, since what a file says about its maker can't be relied on. */
const OWNERS = {
  'built-in': 'postern',
  folder: 'local',
  'lm-studio': 'lm-studio',
  ollama: 'ollama',
} as const satisfies Record<Model['origin'], string>;

type ListedModel = Model & { readonly contextTokens: number | undefined };

/**
 * OpenAI's own models say nothing of their context. Servers like this one do, each by a name of its own, and clients look
 * for one of them: OpenRouter's, LM Studio's and vLLM's.
 */
function encodeModel({ id, modifiedAtMs, origin, contextTokens }: ListedModel): object {
  const model = { id, object: 'model', created: Math.floor(modifiedAtMs / 1000), owned_by: OWNERS[origin] };
  if (contextTokens === undefined) return model;
  return { ...model, context_length: contextTokens, context_window: contextTokens, max_model_len: contextTokens };
}
