/** Folders as LM Studio and Ollama lay them out, made for tests. */
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export async function putFile(path: string, content: string | Buffer): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
  return path;
}

export const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex');

interface OllamaLayer {
  readonly kind: string;
  readonly content: string | Buffer;
}

/**
 * Puts a model into an Ollama folder as `ollama pull` would.
 * @param name `<host>/<namespace>/<model>/<tag>`
 * @returns the digest of the model layer
 */
export async function putOllamaModel(
  folder: string,
  name: string,
  model: string | Buffer,
  more: readonly OllamaLayer[] = [],
): Promise<string> {
  const layers = [{ kind: 'model', content: model }, ...more];
  for (const { content } of layers) await putFile(join(folder, 'blobs', `sha256-${sha256(content)}`), content);
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
    config: {
      mediaType: 'application/vnd.docker.container.image.v1+json',
      digest: `sha256:${'0'.repeat(64)}`,
      size: 1,
    },
    layers: layers.map(({ kind, content }) => ({
      mediaType: `application/vnd.ollama.image.${kind}`,
      digest: `sha256:${sha256(content)}`,
      size: Buffer.byteLength(content),
    })),
  };
  await putFile(join(folder, 'manifests', name), JSON.stringify(manifest));
  return `sha256:${sha256(model)}`;
}
