/**
 * Every `*.gguf` under a folder, the parts of a split file as one model, which is there once all of them are. Looks at
 * names and sizes only.
 */
import { readdir, stat } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import type { FoundModel } from './model-source.ts';

/** How deep below the folder files are looked for: `<publisher>/<model>/<file>` and one level to spare. */
const MAX_FOLDER_DEPTH = 4;

/** @param folder need not exist; an absent one holds no models */
export async function findGgufModels(folder: string): Promise<readonly FoundModel[]> {
  return nameModels(await ggufFiles(folder, 0), folder);
}

interface ModelFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
  readonly fileKey: string;
}

/** Follows links, since people keep models on another disk. @returns undefined for a link to nothing, or no file */
export async function describeFile(path: string): Promise<ModelFile | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() !== true) return undefined;
  return {
    path,
    sizeBytes: found.size,
    modifiedAtMs: Math.floor(found.mtimeMs),
    fileKey: `${found.dev}:${found.ino}`,
  };
}

async function ggufFiles(folder: string, depth: number): Promise<ModelFile[]> {
  if (depth > MAX_FOLDER_DEPTH) return [];
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const found = await Promise.all(
    entries.map(async (entry) => {
      const path = join(folder, entry.name);
      if (isModelFile(entry.name)) return [await describeFile(path)].filter((file) => file !== undefined);
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

/** `name-00001-of-00003.gguf`: llama.cpp opens the first part and finds the others by itself. */
const SPLIT_PART = /-(\d{5})-of-(\d{5})$/;

interface PartialModel {
  readonly parts: readonly ModelFile[];
  readonly total: number;
}

/** A model's id is its file name without the extension, or its path where two files share a name. */
function nameModels(files: readonly ModelFile[], folder: string): FoundModel[] {
  const byPath = new Map<string, PartialModel>();
  for (const file of files) {
    const stem = file.path.slice(0, -'.gguf'.length);
    const whole = stem.replace(SPLIT_PART, '');
    const total = Number(SPLIT_PART.exec(stem)?.[2] ?? 1);
    byPath.set(whole, { parts: [...(byPath.get(whole)?.parts ?? []), file], total });
  }
  const uses = new Map<string, number>();
  for (const whole of byPath.keys()) uses.set(basename(whole), (uses.get(basename(whole)) ?? 0) + 1);
  return [...byPath].flatMap(([whole, { parts, total }]) => {
    const longId = relative(folder, whole).split(sep).join('/');
    const id = uses.get(basename(whole)) === 1 ? basename(whole) : longId;
    return parts.length < total ? [] : [{ ...joined(parts), id, longId }];
  });
}

/** Of parts named alike the first is the first by name. */
function joined(parts: readonly ModelFile[]): ModelFile {
  const [first, ...others] = parts.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  if (first === undefined) throw new TypeError('a model has at least one file');
  return {
    ...first,
    sizeBytes: others.reduce((sum, { sizeBytes }) => sum + sizeBytes, first.sizeBytes),
    modifiedAtMs: Math.max(first.modifiedAtMs, ...others.map(({ modifiedAtMs }) => modifiedAtMs)),
  };
}
