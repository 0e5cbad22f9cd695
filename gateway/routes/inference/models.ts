/** The models there are: `GET /v1/models`, `GET /v1/models/{id}`. */
import type { Model } from '../../../core/inference/catalog.ts';
import { NO_BODY_BYTES } from '../../bounds.ts';
import type { Route } from '../../route.ts';

export const listModels: Route = {
  method: 'GET',
  path: '/models',
  access: 'inference',
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'The installed models, in OpenAI style.',
  async handle(_request, { catalog }) {
    return { body: { object: 'list', data: (await catalog.list()).map(encodeModel) } };
  },
};

export const getModel: Route = {
  method: 'GET',
  path: '/models/*',
  access: 'inference',
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '/v1',
  summary: 'One installed model, in OpenAI style.',
  async handle({ params }, { catalog }) {
    return { body: encodeModel(await catalog.resolve(params['*'] ?? '')) };
  },
};

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
