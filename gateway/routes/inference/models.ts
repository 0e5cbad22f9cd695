/** The models there are: `GET /v1/models`, `GET /v1/models/{id}`. */
import type { Model } from '../../../core/inference/catalog.ts';
import type { GatewayRequest, Services } from '../../route.ts';
import { ANTHROPIC_VERSION } from '../../wire/anthropic/dialect.ts';
import { encodeModelInfo, encodeModelPage } from '../../wire/anthropic/models.ts';
import { openai } from '../../wire/openai/dialect.ts';
import { inferenceRoute } from '../route-classes.ts';

export const listModels = inferenceRoute({
  dialect: openai,
  method: 'GET',
  path: '/models',
  summary: 'The installed models, in OpenAI style; with the header anthropic-version in Anthropic style.',
  async handle({ headers, query }, { catalog }: Pick<Services, 'catalog'>) {
    const models = await catalog.list();
    if (isAnthropic(headers)) return { body: encodeModelPage(models, query) };
    return { body: { object: 'list', data: models.map(encodeModel) } };
  },
});

export const getModel = inferenceRoute({
  dialect: openai,
  method: 'GET',
  path: '/models/*',
  summary: 'One installed model, in OpenAI style; with the header anthropic-version in Anthropic style.',
  async handle({ headers, params }, { catalog }: Pick<Services, 'catalog'>) {
    const model = await catalog.resolve(params['*'] ?? '');
    return { body: isAnthropic(headers) ? encodeModelInfo(model) : encodeModel(model) };
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

function encodeModel({ id, modifiedAtMs, origin }: Model): object {
  return { id, object: 'model', created: Math.floor(modifiedAtMs / 1000), owned_by: OWNERS[origin] };
}
