/** The models there are: `GET /v1/models`, `GET /v1/models/{id}`. */
import type { Model } from '../../../core/inference/catalog.ts';
import type { Services } from '../../route.ts';
import { openai } from '../../wire/openai/dialect.ts';
import { inferenceRoute } from '../route-classes.ts';

export const listModels = inferenceRoute({
  dialect: openai,
  method: 'GET',
  path: '/models',
  summary: 'The installed models, in OpenAI style.',
  async handle(_request, { catalog }: Pick<Services, 'catalog'>) {
    return { body: { object: 'list', data: (await catalog.list()).map(encodeModel) } };
  },
});

export const getModel = inferenceRoute({
  dialect: openai,
  method: 'GET',
  path: '/models/*',
  summary: 'One installed model, in OpenAI style.',
  async handle({ params }, { catalog }: Pick<Services, 'catalog'>) {
    return { body: encodeModel(await catalog.resolve(params['*'] ?? '')) };
  },
});

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
