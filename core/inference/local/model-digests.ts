/**
 * The SHA-256 of each model's files, which is how Ollama's clients tell models apart.
 *
 * Reading 50 GB takes minutes, and nobody who asks for a list should wait for that. So a small model, such as the
 * built-in one, is read when it is first asked for; a large one is read in the background, one at a time and the
 * smallest first, and has no digest until that is done. Each digest is worked out once, then kept.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { Database } from '../../../storage/database.ts';
import { createFileCache, type FileCache } from './file-cache.ts';
import type { LocalModel } from '../catalog.ts';
import { modelFiles } from './model-files.ts';

/** What reading costs a tenth of a second or less on any disk. */
const AT_ONCE_BYTES = 32 * 1024 * 1024;

/** Large enough that reading is not all overhead, small enough that hashing one holds nothing else up: about 1 ms. */
const CHUNK_BYTES = 1024 * 1024;

export interface ModelDigests {
  /** `sha256:` and 64 hexadecimal digits; undefined for now, while a large model is still being read. */
  find(model: LocalModel): Promise<string | undefined>;
  /** Stops reading. What was not finished starts over the next time. */
  close(): void;
}

interface ModelDigestsOptions {
  readonly database: Database;
  /** The size up to which a model is read while the caller waits. */
  readonly atOnceBytes?: number;
}

export function createModelDigests({ database, atOnceBytes = AT_ONCE_BYTES }: ModelDigestsOptions): ModelDigests {
  const digests = new Digests(createFileCache(database, 'model_digests'));
  return {
    find: async (model) => {
      const known = model.digest ?? digests.known(model);
      if (known !== undefined) return known;
      if (model.sizeBytes <= atOnceBytes) return digests.compute(model);
      digests.computeLater(model);
      return undefined;
    },
    close: () => digests.close(),
  };
}

class Digests {
  readonly #cache: FileCache;
  readonly #closing = new AbortController();
  /** By path; those that several callers ask for at once are read once. */
  readonly #underWay = new Map<string, Promise<string | undefined>>();
  readonly #queue = new Map<string, LocalModel>();
  #isReading = false;

  constructor(cache: FileCache) {
    this.#cache = cache;
  }

  known(model: LocalModel): string | undefined {
    return this.#closing.signal.aborted ? undefined : this.#cache.find(model);
  }

  compute(model: LocalModel): Promise<string | undefined> {
    const running = this.#underWay.get(model.path);
    if (running !== undefined) return running;
    const digest = this.#read(model).finally(() => this.#underWay.delete(model.path));
    this.#underWay.set(model.path, digest);
    return digest;
  }

  computeLater(model: LocalModel): void {
    if (this.#underWay.has(model.path)) return;
    this.#queue.set(model.path, model);
    if (!this.#isReading) void this.#readQueue();
  }

  close(): void {
    this.#queue.clear();
    this.#closing.abort();
  }

  async #readQueue(): Promise<void> {
    this.#isReading = true;
    for (let next = smallest(this.#queue); next !== undefined; next = smallest(this.#queue)) {
      this.#queue.delete(next.path);
      // Whoever asks again starts again.
      await this.compute(next).catch(() => undefined);
    }
    this.#isReading = false;
  }

  async #read(model: LocalModel): Promise<string | undefined> {
    const { signal } = this.#closing;
    const read = await hashFiles(modelFiles(model.path), signal).catch(() => undefined);
    // Gone, cut off by the end of the service, or still being written: whoever asks again starts again.
    if (signal.aborted || read?.bytes !== model.sizeBytes) return undefined;
    this.#cache.store(model, read.digest);
    return read.digest;
  }
}

function smallest(models: ReadonlyMap<string, LocalModel>): LocalModel | undefined {
  return [...models.values()].toSorted((one, other) => one.sizeBytes - other.sizeBytes)[0];
}

/** Of a model in several parts the digest covers all of them, in order. */
async function hashFiles(paths: readonly string[], signal: AbortSignal): Promise<{ digest: string; bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for (const path of paths) {
    for await (const chunk of createReadStream(path, { signal, highWaterMark: CHUNK_BYTES })) {
      if (!(chunk instanceof Uint8Array)) throw new TypeError('a file was read as text');
      hash.update(chunk);
      bytes += chunk.length;
    }
  }
  return { digest: `sha256:${hash.digest('hex')}`, bytes };
}
