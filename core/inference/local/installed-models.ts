/**
 * Which models there are on this machine: the built-in one, every `*.gguf` under the models folder, and what other apps on this machine
 * have downloaded already. Looks at names and sizes only; whether a file holds a usable model is found out when it is
 * loaded.
 */
import { stat } from 'node:fs/promises';
import { ServiceError } from '../../errors.ts';
import type { LocalModel, ModelOrigin } from '../catalog.ts';
import { findById, idFor, unknownModel, type Aliases } from '../model-names.ts';
import { modelFiles } from './model-files.ts';
import { findPulled } from './pulled-models.ts';
import { describeFile, findGgufModels } from './model-sources/gguf-folder.ts';
import type { FoundModel, ModelSource } from './model-sources/model-source.ts';

/** The alias under which the built-in demonstrator model is always there. */
export const BUILT_IN_MODEL_ID = 'foundation';

export interface InstalledModels {
  /** Everything installed, the built-in model first, the others by id. Reads the disk. */
  list(): Promise<readonly LocalModel[]>;
  /**
   * The model a client means, by its id or by another name; see `model-names.ts`. Looks through the disk only for a name
   * not seen before, or whose file has changed since.
   * @throws {ServiceError} `model_not_found`
   */
  resolve(name: string): Promise<LocalModel>;
}

interface InstalledModelsOptions {
  /** Need not exist; an absent folder holds no models. */
  readonly modelsDir: string;
  readonly builtInPath: string;
  /** Further places, in the order in which they win where two have the same model. */
  readonly sources?: readonly ModelSource[];
  /** Asked for whenever a name is no model's id. None by default. */
  readonly aliases?: () => Promise<Aliases>;
}

/** Under load each request would otherwise ask the disk the same. */
const FRESH_MS = 200;
/** A model that is installed under a name which stood for another one answers to it so much later at the latest. */
const LISTED_FRESH_MS = 2000;

export function createInstalledModels(options: InstalledModelsOptions): InstalledModels {
  const { modelsDir, builtInPath, sources = [], aliases = async () => ({}) } = options;
  let known: ReadonlyMap<string, LocalModel> = new Map();
  let listedAt = -Infinity;
  const all: readonly ModelSource[] = [
    { origin: 'built-in', find: () => findBuiltIn(builtInPath) },
    { origin: 'folder', find: () => findGgufModels(modelsDir) },
    ...sources,
  ];

  /** The last look at a model's file: when, and whether it was as before. */
  const looks = new WeakMap<LocalModel, { readonly at: number; readonly unchanged: Promise<boolean> }>();

  async function list(): Promise<readonly LocalModel[]> {
    const found = await Promise.all(
      all.map(async (source) => ({ origin: source.origin, models: await source.find() })),
    );
    const [builtIn, ...others] = merge(found);
    others.sort((a, b) => (a.id < b.id ? -1 : 1));
    const models = builtIn === undefined ? [] : [builtIn, ...others];
    known = new Map(models.map((model) => [model.id, model]));
    listedAt = performance.now();
    return models;
  }

  const findNamed = (id: string): LocalModel | undefined =>
    findById(known, id) ?? findPulled(known.values(), id, modelsDir);

  async function findKnown(id: string): Promise<LocalModel | undefined> {
    const model = findNamed(id);
    if (model === undefined) return undefined;
    const now = performance.now();
    let look = looks.get(model);
    if (look === undefined || now - look.at >= FRESH_MS) {
      look = { at: now, unchanged: isUnchanged(model) };
      looks.set(model, look);
    }
    return (await look.unchanged) ? model : undefined;
  }

  const find = async (id: string): Promise<LocalModel | undefined> =>
    (await findKnown(id)) ?? (await list().then(() => findNamed(id)));

  return {
    list,
    async resolve(name) {
      const itself = await findKnown(name);
      if (itself !== undefined) return itself;
      const id = idFor(name, await aliases());
      const isListed = performance.now() - listedAt < LISTED_FRESH_MS;
      const model =
        id === undefined ? await find(name) : ((isListed ? undefined : await find(name)) ?? (await find(id)));
      if (model !== undefined) return model;
      throw new ServiceError('model_not_found', unknownModel(name, id, known.values()), { field: 'model' });
    },
  };
}

async function findBuiltIn(path: string): Promise<readonly FoundModel[]> {
  const file = (await describeFile(path)) ?? { path, sizeBytes: 0, modifiedAtMs: 0, fileKey: path };
  return [{ ...file, id: BUILT_IN_MODEL_ID, longId: BUILT_IN_MODEL_ID }];
}

interface Findings {
  readonly origin: ModelOrigin;
  readonly models: readonly FoundModel[];
}

/**
 * No id twice. Of two files with one name and one size the first is taken to be both; where the sizes differ the second
 * is there under its longer name. A file of LM Studio's that is linked to from elsewhere is there once; the owner's folder
 * and Ollama have names of their own for what they hold.
 */
function merge(findings: readonly Findings[]): LocalModel[] {
  const byId = new Map<string, LocalModel>();
  const fileKeys = new Set<string>();
  for (const { origin, models } of findings) {
    const isNewFile = ({ fileKey }: FoundModel): boolean => origin !== 'lm-studio' || !fileKeys.has(fileKey);
    for (const { id, longId, fileKey: _, ...file } of models.filter(isNewFile)) {
      const isTaken = byId.has(id);
      const name = isTaken ? longId : id;
      if (byId.has(name) || (isTaken && byId.get(id)?.sizeBytes === file.sizeBytes)) continue;
      byId.set(name, { ...file, kind: 'local', id: name, origin, isBuiltIn: origin === 'built-in' });
    }
    for (const { fileKey } of models) fileKeys.add(fileKey);
  }
  return [...byId.values()];
}

/** The parts of a split file have sizes of their own; there the first one's presence has to do. */
async function isUnchanged({ path, sizeBytes, modifiedAtMs }: LocalModel): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() !== true) return false;
  return modelFiles(path).length > 1 || (found.size === sizeBytes && Math.floor(found.mtimeMs) === modifiedAtMs);
}
