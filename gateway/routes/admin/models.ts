/** `/admin/models*`: which models are loaded, and the owner's hand on that. */
import * as z from 'zod';
import { parseBody } from '../../json-body.ts';
import type { Services } from '../../route.ts';
import { adminRoute } from '../route-classes.ts';

type Needs = Pick<Services, 'inference'>;

const whichModel = z.strictObject({ model: z.string().min(1).describe('The id of an installed model.') });

export const adminModels = adminRoute({
  method: 'GET',
  path: '/admin/models',
  summary: 'The loaded models: memory, context, calls, and when each will be unloaded.',
  handle: (_request, services: Needs) => ({ body: { models: loadedModels(services) } }),
});

export const loadModel = adminRoute({
  method: 'POST',
  path: '/admin/models/load',
  summary: 'Load a model before anybody asks it; answers when it is ready.',
  body: whichModel,
  async handle({ json }, services: Needs) {
    const { model } = parseBody(whichModel, json());
    await services.inference.load(model);
    return { body: { models: loadedModels(services) } };
  },
});

export const unloadModel = adminRoute({
  method: 'POST',
  path: '/admin/models/unload',
  summary: 'Unload a model when the calls that use it are done; answers when its memory is free.',
  body: whichModel,
  async handle({ json }, services: Needs) {
    const { model } = parseBody(whichModel, json());
    await services.inference.unload(model);
    return { body: { models: loadedModels(services) } };
  },
});

function loadedModels({ inference }: Needs): readonly object[] {
  const { residents, inflight } = inference.status();
  return residents.map(({ id, pid, contextTokens, sequences, memoryBytes, unloadsInMs }) => ({
    id,
    pid,
    context_tokens: contextTokens,
    sequences,
    memory_bytes: memoryBytes,
    running: inflight.get(id)?.running ?? 0,
    queued: inflight.get(id)?.queued ?? 0,
    unloads_in_seconds: unloadsInMs === undefined ? null : Math.ceil(unloadsInMs / 1000),
  }));
}
