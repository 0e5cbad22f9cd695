/** `/api/copy`, `/api/delete`, `/api/create`, `/api/push`: what Ollama's clients do to models. For the owner alone. */
import type { ModelCatalog } from '../../../core/inference/catalog.ts';
import type { Inference } from '../../../core/inference/inference.ts';
import { isModelName, type ModelFolder } from '../../../core/inference/model-folder.ts';
import { RequestError } from '../../errors.ts';
import { ollama } from '../../wire/ollama/dialect.ts';
import {
  ollamaCopySchema,
  ollamaDeleteSchema,
  parseCopyRequest,
  parseDeleteRequest,
} from '../../wire/ollama/manage.ts';
import { adminRoute } from '../route-classes.ts';

interface Needs {
  readonly catalog: Pick<ModelCatalog, 'list' | 'resolve'>;
  readonly inference: Pick<Inference, 'unload'>;
  readonly modelFolder: ModelFolder;
}

/** Ollama says that it is done by the status alone. */
const DONE = { body: '' } as const;

export const ollamaDelete = adminRoute({
  dialect: ollama,
  method: 'DELETE',
  path: '/delete',
  summary: 'Remove a model of the models folder, in Ollama style. For the owner alone.',
  body: ollamaDeleteSchema,
  async handle({ json }, { catalog, inference, modelFolder }: Needs) {
    const model = await modelNamed(parseDeleteRequest(json()), catalog);
    await modelFolder.remove(model);
    // It answers to its calls until then, and takes no new one: its file is gone.
    await inference.unload(model.id);
    return DONE;
  },
});

export const ollamaCopy = adminRoute({
  dialect: ollama,
  method: 'POST',
  path: '/copy',
  summary: 'Give a model a second name, in Ollama style. For the owner alone.',
  body: ollamaCopySchema,
  async handle({ json }, { catalog, modelFolder }: Needs) {
    const { source, destination } = parseCopyRequest(json());
    if (!isModelName(destination))
      refuseDestination(
        'expected up to 128 letters, digits, ".", "_" or "-", a letter or digit first, and no name of a part of a model',
      );
    const taken = (await catalog.list()).some(({ id }) => id.toLowerCase() === destination.toLowerCase());
    if (taken) refuseDestination('a model has this name');
    await modelFolder.copy(await catalog.resolve(source), destination);
    return DONE;
  },
});

/** By its id: an alias may stand for any name, and nobody loses a model by one. @throws {ServiceError} `model_not_found` */
async function modelNamed(name: string, catalog: Needs['catalog']) {
  const model = await catalog.resolve(name);
  const untagged = (text: string): string => text.toLowerCase().replace(/:latest$/, '');
  if (untagged(model.id) === untagged(name)) return model;
  const message = `This is another name of '${model.id}': remove the model by its id.`;
  throw new RequestError('bad_request', message, { param: 'model' });
}

function refuseDestination(message: string): never {
  throw new RequestError('bad_request', `destination: ${message}`, { param: 'destination' });
}

export const ollamaCreate = adminRoute({
  dialect: ollama,
  method: 'POST',
  path: '/create',
  summary: 'Refused: models are files here.',
  handle() {
    throw new RequestError(
      'not_implemented',
      'Postern makes no models: a model is a GGUF file. Put one into the models folder, or fetch one with /api/pull.',
    );
  },
});

export const ollamaPush = adminRoute({
  dialect: ollama,
  method: 'POST',
  path: '/push',
  summary: 'Refused: models stay on this machine.',
  handle() {
    throw new RequestError('not_implemented', 'Postern uploads no models: they stay on this machine.');
  },
});
