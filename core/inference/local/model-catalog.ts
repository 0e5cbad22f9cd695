/**
 * Which models there are: the built-in one, every `*.gguf` under the models folder, and what other apps on this machine
 * have downloaded already. Looks at names and sizes only; whether a file holds a usable model is found out when it is
 * loaded.
 */
import { stat } from 'node:fs/promises';
import { ServiceError } from '../../errors.ts';
import { modelFiles } from './model-files.ts';
import { describeFile, findGgufModels } from './model-sources/gguf-folder.ts';
import type { FoundModel, ModelOrigin, ModelSource } from './model-sources/model-source.ts';

/** The alias under which the built-in demonstrator model is always there. */
export const BUILT_IN_MODEL_ID = 'foundation';

/** Longer than any file name; an error is no place for whatever else was sent as an id. */
const MAX_QUOTED_ID = 200;

/** The tag that every name of Ollama's has, said or not. */
const DEFAULT_TAG = ':latest';

export interface InstalledModel {
  /** What clients call it. */
  readonly id: string;
  readonly path: string;
  /** Bytes on disk, all parts of a split file together. */
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
  /** Whose file it is; Postern changes only what is in its own folder. */
  readonly origin: ModelOrigin;
  readonly isBuiltIn: boolean;
  /** `sha256:<hex>` where it is known without reading the file. */
  readonly digest?: string | undefined;
}

export interface ModelCatalog {
  /** Everything installed, the built-in model first, the others by id. Reads the disk. */
  list(): Promise<readonly InstalledModel[]>;
  /**
   * The model a client means; `:latest` at the end of a name may be there or not. Looks through the disk only for an id
   * not seen before, or whose file has changed since.
   * @throws {ServiceError} `model_not_found`
   */
  resolve(id: string): Promise<InstalledModel>;
}

interface ModelCatalogOptions {
  /** Need not exist; an absent folder holds no models. */
  readonly modelsDir: string;
  readonly builtInPath: string;
  /** Further places, in the order in which they win where two have the same model. */
  readonly sources?: readonly ModelSource[];
}

/** Under load each request would otherwise ask the disk the same. */
const FRESH_MS = 200;

export function createModelCatalog({ modelsDir, builtInPath, sources = [] }: ModelCatalogOptions): ModelCatalog {
  let known: ReadonlyMap<string, InstalledModel> = new Map();
  const all: readonly ModelSource[] = [
    { origin: 'built-in', find: () => findBuiltIn(builtInPath) },
    { origin: 'folder', find: () => findGgufModels(modelsDir) },
    ...sources,
  ];

  /** The last look at a model's file: when, and whether it was as before. */
  const looks = new WeakMap<InstalledModel, { readonly at: number; readonly unchanged: Promise<boolean> }>();

  async function list(): Promise<readonly InstalledModel[]> {
    const found = await Promise.all(
      all.map(async (source) => ({ origin: source.origin, models: await source.find() })),
    );
    const [builtIn, ...others] = merge(found);
    others.sort((a, b) => (a.id < b.id ? -1 : 1));
    const models = builtIn === undefined ? [] : [builtIn, ...others];
    known = new Map(models.map((model) => [model.id, model]));
    return models;
  }

  const named = (id: string): InstalledModel | undefined => known.get(id) ?? known.get(otherTag(id));

  async function findKnown(id: string): Promise<InstalledModel | undefined> {
    const model = named(id);
    if (model === undefined) return undefined;
    const now = performance.now();
    let look = looks.get(model);
    if (look === undefined || now - look.at >= FRESH_MS) {
      look = { at: now, unchanged: isUnchanged(model) };
      looks.set(model, look);
    }
    return (await look.unchanged) ? model : undefined;
  }

  return {
    list,
    async resolve(id) {
      const model = (await findKnown(id)) ?? (await list().then(() => named(id)));
      if (model !== undefined) return model;
      throw new ServiceError(
        'model_not_found',
        `The model '${id.slice(0, MAX_QUOTED_ID)}' is not installed. GET /v1/models lists those that are.`,
        {
          param: 'model',
        },
      );
    },
  };
}

function otherTag(id: string): string {
  return id.endsWith(DEFAULT_TAG) ? id.slice(0, -DEFAULT_TAG.length) : `${id}${DEFAULT_TAG}`;
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
function merge(findings: readonly Findings[]): InstalledModel[] {
  const byId = new Map<string, InstalledModel>();
  const fileKeys = new Set<string>();
  for (const { origin, models } of findings) {
    const isNewFile = ({ fileKey }: FoundModel): boolean => origin !== 'lm-studio' || !fileKeys.has(fileKey);
    for (const { id, longId, fileKey: _, ...file } of models.filter(isNewFile)) {
      const isTaken = byId.has(id);
      const name = isTaken ? longId : id;
      if (byId.has(name) || (isTaken && byId.get(id)?.sizeBytes === file.sizeBytes)) continue;
      byId.set(name, { ...file, id: name, origin, isBuiltIn: origin === 'built-in' });
    }
    for (const { fileKey } of models) fileKeys.add(fileKey);
  }
  return [...byId.values()];
}

/** The parts of a split file have sizes of their own; there the first one's presence has to do. */
async function isUnchanged({ path, sizeBytes, modifiedAtMs }: InstalledModel): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() !== true) return false;
  return modelFiles(path).length > 1 || (found.size === sizeBytes && Math.floor(found.mtimeMs) === modifiedAtMs);
}
