/**
 * The first bytes of a model file, looked at before the engine reads on: it believes whatever counts stand there, and
 * with nonsense would go on reading for ever.
 *
 *     offset  size  field (little-endian; https://github.com/ggml-org/ggml/blob/master/docs/gguf.md)
 *          0     4  magic "GGUF"
 *          4     4  version
 *          8     8  number of tensors
 *         16     8  number of metadata pairs
 */
import { open } from 'node:fs/promises';
import { ServiceError } from '../../../errors.ts';

const HEADER_BYTES = 24;
const VERSIONS: ReadonlySet<number> = new Set([2, 3]);
/** The largest models have some thousand tensors, and tokenizers are a single pair each. */
const MAX_COUNT = 1_000_000n;

/** @throws {ServiceError} `engine_failed` for a file that can't be a model */
export async function checkGgufHeader(path: string): Promise<void> {
  const header = await readHeader(path);
  const isValid =
    header.byteLength === HEADER_BYTES &&
    header.toString('latin1', 0, 4) === 'GGUF' &&
    VERSIONS.has(header.readUInt32LE(4)) &&
    header.readBigUInt64LE(8) <= MAX_COUNT &&
    header.readBigUInt64LE(16) <= MAX_COUNT;
  if (!isValid) throw damagedModel();
}

export function damagedModel(cause?: unknown): ServiceError {
  return new ServiceError(
    'engine_failed',
    'The model file cannot be loaded: it is damaged, or not a GGUF chat model.',
    { cause },
  );
}

async function readHeader(path: string): Promise<Buffer> {
  const file = await open(path).catch((cause: unknown) => {
    throw new ServiceError('engine_failed', 'The model file cannot be read.', { cause });
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
