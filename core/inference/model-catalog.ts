/**
 * Which models there are: the built-in one, and every `*.gguf` under the models folder. Looks at names and sizes
 * only; whether a file holds a usable model is found out when it is loaded.
 */
import { readdir, stat } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { ServiceError } from '../errors.ts';

/** The alias under which the built-in demonstrator model is always there. */
export const BUILT_IN_MODEL_ID = 'foundation';

/** How deep below the models folder files are looked for: `<publisher>/<model>/<file>` and one level to spare. */
const MAX_FOLDER_DEPTH = 4;

/** Longer than any file name; an error is no place for whatever else was sent as an id. */
const MAX_QUOTED_ID = 200;

export interface InstalledModel {
  /** What clients call it. */
  readonly id: string;
  readonly path: string;
  /** Bytes on disk, all parts of a split file together. */
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
  readonly isBuiltIn: boolean;
}

export interface ModelCatalog {
  /** Everything installed, the built-in model first, the others by id. Reads the disk. */
  list(): Promise<readonly InstalledModel[]>;
  /**
   * The model a client means. Reads the disk only for an id not seen before.
   * @throws {ServiceError} `model_not_found`
   */
  resolve(id: string): Promise<InstalledModel>;
}

/** @param options.modelsDir need not exist; an absent folder holds no models. */
export function createModelCatalog(options: {
  readonly modelsDir: string;
  readonly builtInPath: string;
}): ModelCatalog {
  let known: ReadonlyMap<string, InstalledModel> = new Map();

  async function list(): Promise<readonly InstalledModel[]> {
    const [builtIn, files] = await Promise.all([describe(options.builtInPath), ggufFiles(options.modelsDir, 0)]);
    const installed = nameModels(files, options.modelsDir).filter((model) => model.id !== BUILT_IN_MODEL_ID);
    installed.sort((a, b) => (a.id < b.id ? -1 : 1));
    const models = [{ ...builtIn, id: BUILT_IN_MODEL_ID, isBuiltIn: true }, ...installed];
    known = new Map(models.map((model) => [model.id, model]));
    return models;
  }

  return {
    list,
    async resolve(id) {
      const model = known.get(id) ?? (await list().then(() => known.get(id)));
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

interface ModelFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
}

/** `name-00001-of-00003.gguf`: llama.cpp opens the first part and finds the others by itself. */
const SPLIT_PART = /-(\d{5})-of-\d{5}$/;

/** A model's id is its file name without the extension, or its path where two files share a name. */
function nameModels(files: readonly ModelFile[], modelsDir: string): InstalledModel[] {
  const byPath = new Map<string, ModelFile>();
  for (const file of files) {
    const stem = file.path.slice(0, -'.gguf'.length);
    const whole = stem.replace(SPLIT_PART, '');
    const part = SPLIT_PART.exec(stem)?.[1];
    const other = byPath.get(whole);
    byPath.set(whole, {
      path: part === undefined || part === '00001' ? file.path : (other?.path ?? file.path),
      sizeBytes: file.sizeBytes + (other?.sizeBytes ?? 0),
      modifiedAtMs: Math.max(file.modifiedAtMs, other?.modifiedAtMs ?? 0),
    });
  }
  const uses = new Map<string, number>();
  for (const whole of byPath.keys()) uses.set(basename(whole), (uses.get(basename(whole)) ?? 0) + 1);
  return [...byPath].map(([whole, file]) => ({
    ...file,
    id: uses.get(basename(whole)) === 1 ? basename(whole) : relative(modelsDir, whole).split(sep).join('/'),
    isBuiltIn: false,
  }));
}

async function ggufFiles(folder: string, depth: number): Promise<ModelFile[]> {
  if (depth > MAX_FOLDER_DEPTH) return [];
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const found = await Promise.all(
    entries.map(async (entry) => {
      const path = join(folder, entry.name);
      if (isModelFile(entry.name)) return [await describe(path)].filter((file) => file.sizeBytes >= 0);
      const maybeFolder = entry.isDirectory() || entry.isSymbolicLink();
      return maybeFolder ? ggufFiles(path, depth + 1) : [];
    }),
  );
  return found.flat();
}

/** A projector (`mmproj`) is a part of another model, not one that can be talked to. */
function isModelFile(name: string): boolean {
  return name.endsWith('.gguf') && !name.startsWith('.') && !/mmproj/i.test(name);
}

/** Follows links, since people keep models on another disk. A link to nothing has size -1. */
async function describe(path: string): Promise<InstalledModel> {
  const found = await stat(path).catch(() => undefined);
  return {
    id: basename(path),
    path,
    sizeBytes: found?.isFile() === true ? found.size : -1,
    modifiedAtMs: Math.floor(found?.mtimeMs ?? 0),
    isBuiltIn: false,
  };
}
