/**
 * A file while it is being fetched: `<file>.part`, and `<file>.part.state` beside it. Its hash is that of every byte in
 * it, also of those that an earlier attempt left. It becomes the file itself by a rename, once all is there and checked.
 */
import { createHash, type Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DownloadError } from './download-error.ts';
import { lockPartState, type LockedState, type PartState } from './part-state.ts';

export function partPath(path: string): string {
  return `${path}.part`;
}

function statePath(path: string): string {
  return `${path}.part.state`;
}

const READ_BYTES = 1024 * 1024;

/** @throws {DownloadError} `busy` while another process fetches the same file */
export async function openPart(path: string): Promise<PartFile> {
  await mkdir(dirname(path), { recursive: true });
  const state = lockPartState(statePath(path));
  if (state === undefined) throw new DownloadError('busy', 'Another process is fetching this file already.');
  try {
    // A link in its place would lead elsewhere.
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
    return new PartFile(path, await open(partPath(path), flags), state);
  } catch (error) {
    state.close();
    throw error;
  }
}

export class PartFile {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #state: LockedState;
  #hash: Hash = createHash('sha256');
  #offset = 0;

  constructor(path: string, file: FileHandle, state: LockedState) {
    this.#path = path;
    this.#file = file;
    this.#state = state;
  }

  /** Bytes that are there and in the hash. */
  get offset(): number {
    return this.#offset;
  }

  get state(): PartState | undefined {
    return this.#state.read();
  }

  /** Takes the bytes that an earlier attempt left as the beginning of the file. */
  async resume({
    signal,
    onProgress,
  }: {
    readonly signal: AbortSignal;
    readonly onProgress: () => void;
  }): Promise<void> {
    const buffer = Buffer.alloc(READ_BYTES);
    for (;;) {
      if (signal.aborted) throw new DownloadError('stopped', 'Stopped.');
      const { bytesRead } = await this.#file.read(buffer, 0, READ_BYTES, this.#offset);
      if (bytesRead === 0) return;
      this.#hash.update(buffer.subarray(0, bytesRead));
      this.#offset += bytesRead;
      onProgress();
    }
  }

  /** Begins at the first byte, whatever was there before. */
  async restart(state: PartState): Promise<void> {
    await this.#file.truncate(0);
    this.#hash = createHash('sha256');
    this.#offset = 0;
    this.#state.write(state);
  }

  async append(chunk: Uint8Array): Promise<void> {
    await this.#file.write(chunk, 0, chunk.length, this.#offset);
    this.#hash.update(chunk);
    this.#offset += chunk.length;
  }

  /** SHA-256 of all that is there, in hexadecimal. */
  digest(): string {
    return this.#hash.copy().digest('hex');
  }

  /** Gives the file its name. On a disk that keeps its word, a crash at any moment leaves the part or the whole. */
  async finish(): Promise<void> {
    await this.#file.sync();
    await this.#file.close();
    await rename(partPath(this.#path), this.#path);
    await syncFolder(dirname(this.#path));
    this.#state.close();
    await rm(statePath(this.#path), { force: true });
  }

  /** Leaves what is there to a later attempt. */
  async keep(): Promise<void> {
    if ((await this.#file.stat()).size === 0) return this.discard();
    await this.#file.sync();
    await this.#file.close();
    this.#state.close();
  }

  async discard(): Promise<void> {
    await this.#file.close();
    await rm(partPath(this.#path), { force: true });
    this.#state.close();
    await rm(statePath(this.#path), { force: true });
  }
}

/** Not every system can: Windows opens no folder. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}
