/**
 * The models that Ollama downloaded. Its folder (`manifest/` in the public repository ollama/ollama):
 *
 *     manifests/<host>/<namespace>/<model>/<tag>      JSON: the layers that a model is made of
 *     manifests-v2/<host>/<namespace>/<model>/<tag>   the same of newer versions, as a rule a link to a blob
 *     blobs/sha256-<hex>                              the layers; the file's name is its digest
 *
 * One layer is the model, a GGUF file. A projector beside it is left aside: the model answers text without it, as any
 * here does. A model with an adapter is left out: without it, it would be another model under the same name.
 */
import { lstat, readdir, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import * as z from 'zod';
import type { FoundModel, ModelSource } from './model-source.ts';
import { readSmallJson } from './small-file.ts';

export interface OllamaSettings {
  /** The user's own home folder. */
  readonly userHome: string;
  /** `OLLAMA_MODELS`: a folder that Ollama uses in place of its own. */
  readonly modelsFolder: string | undefined;
  readonly platform: NodeJS.Platform;
}

/** Where Ollama's Linux service, which runs as a user of its own, keeps its models. */
const SERVICE_FOLDER = '/usr/share/ollama/.ollama/models';

export function ollamaModels({ userHome, modelsFolder, platform }: OllamaSettings): ModelSource {
  const own = [join(userHome, '.ollama/models'), ...(platform === 'linux' ? [SERVICE_FOLDER] : [])];
  const folders = modelsFolder === undefined || modelsFolder === '' ? own : [modelsFolder];
  return {
    origin: 'ollama',
    find: async () => (await Promise.all(folders.map(findInFolder))).flat(),
  };
}

/** Before an older list of the same name: newer versions write to the second and leave the first alone. */
const MANIFEST_FOLDERS = ['manifests-v2', 'manifests'];

async function findInFolder(folder: string): Promise<readonly FoundModel[]> {
  const found = new Map<string, FoundModel>();
  const blobs = await realpath(join(folder, 'blobs')).catch(() => undefined);
  if (blobs === undefined) return [];
  for (const name of MANIFEST_FOLDERS) {
    const manifests = await realpath(join(folder, name)).catch(() => undefined);
    if (manifests === undefined) continue;
    const models = await Promise.all(
      (await manifestNames(manifests)).map((parts) => readModel(parts, { manifests, blobs })),
    );
    for (const model of models) if (model !== undefined && !found.has(model.longId)) found.set(model.longId, model);
  }
  return [...found.values()];
}

/** A model's name as its path says it: host, namespace, model and tag. */
type NameParts = readonly string[];

/** `isValidPart` in Ollama's `types/model/name.go`, and a port behind the host. */
const NAME_PART = /^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}$/;
const NAME_PARTS = 4;

async function manifestNames(folder: string, above: NameParts = []): Promise<readonly NameParts[]> {
  if (above.length === NAME_PARTS) return [above];
  const names = (await readdir(join(folder, ...above)).catch(() => [])).filter((name) => NAME_PART.test(name));
  return (await Promise.all(names.map((name) => manifestNames(folder, [...above, name])))).flat();
}

interface Folders {
  readonly manifests: string;
  readonly blobs: string;
}

async function readModel(parts: NameParts, { manifests, blobs }: Folders): Promise<FoundModel | undefined> {
  const path = await realpath(join(manifests, ...parts)).catch(() => undefined);
  if (path === undefined || !(isWithin(path, manifests) || isWithin(path, blobs))) return undefined;
  const layer = modelLayer(await readManifest(path, blobs));
  if (layer === undefined) return undefined;
  const blobPath = blobFile(blobs, layer.digest);
  // No link is followed here: Ollama makes none, and one could lead anywhere.
  const blob = await lstat(blobPath).catch(() => undefined);
  if (blob?.isFile() !== true || blob.size !== layer.size) return undefined;
  return {
    ...namesOf(parts),
    path: blobPath,
    sizeBytes: blob.size,
    modifiedAtMs: Math.floor(blob.mtimeMs),
    fileKey: `${blob.dev}:${blob.ino}`,
    digest: layer.digest,
  };
}

function isWithin(path: string, folder: string): boolean {
  return path.startsWith(folder + sep);
}

const digestSchema = z
  .string()
  .regex(/^sha256[:-][0-9a-fA-F]{64}$/)
  .transform((text) => text.toLowerCase().replace('-', ':'));
const layerSchema = z.looseObject({ mediaType: z.string(), digest: digestSchema, size: z.int().nonnegative() });
const manifestSchema = z.looseObject({ layers: z.array(layerSchema) });
type Manifest = z.output<typeof manifestSchema>;

/** One model made for several engines; each entry is a manifest, or names the blob that is one. */
const manifestListSchema = z.looseObject({
  mediaType: z.literal('application/vnd.ollama.manifest.list.v2+json'),
  manifests: z.array(
    z.looseObject({ runner: z.string().optional(), digest: digestSchema.optional(), layers: z.unknown().optional() }),
  ),
});

/** The engines whose format is GGUF, the one that Ollama itself takes first. */
const RUNNERS = ['ollama', 'llamacpp', undefined];

async function readManifest(path: string, blobs: string): Promise<Manifest | undefined> {
  const json = await readSmallJson(path);
  const list = manifestListSchema.safeParse(json);
  if (!list.success) return manifestSchema.safeParse(json).data;
  const entry = RUNNERS.map((runner) => list.data.manifests.find((one) => one.runner === runner)).find(Boolean);
  if (entry?.digest === undefined || entry.layers !== undefined) return manifestSchema.safeParse(entry).data;
  const blobPath = blobFile(blobs, entry.digest);
  const isFile = await lstat(blobPath).then(
    (found) => found.isFile(),
    () => false,
  );
  return isFile ? manifestSchema.safeParse(await readSmallJson(blobPath)).data : undefined;
}

function modelLayer(manifest: Manifest | undefined): z.output<typeof layerSchema> | undefined {
  const ofKind = (kind: string) =>
    manifest?.layers.filter(({ mediaType }) => mediaType === `application/vnd.ollama.image.${kind}`) ?? [];
  const [model, ...more] = ofKind('model');
  return more.length === 0 && ofKind('adapter').length === 0 ? model : undefined;
}

/** The digest has been checked: what it names lies in that folder and nowhere else. */
function blobFile(blobs: string, digest: string): string {
  return join(blobs, digest.replace(':', '-'));
}

const OLLAMA_HOSTS: ReadonlySet<string> = new Set(['registry.ollama.ai', 'ollama.com']);

/** As Ollama prints them: `llama3.2:1b`, `someone/model:tag`, `hf.co/someone/model:tag`. */
function namesOf(parts: NameParts): { readonly id: string; readonly longId: string } {
  const [host = '', namespace = '', model = '', tag = ''] = parts;
  const longId = `${host}/${namespace}/${model}:${tag}`;
  if (!OLLAMA_HOSTS.has(host)) return { id: longId, longId };
  return { id: namespace === 'library' ? `${model}:${tag}` : `${namespace}/${model}:${tag}`, longId };
}
