/**
 * Writes small GGUF files for tests: a header with the given keys and tensors, and no weights worth anything.
 * The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */

const TYPES = { uint32: 4, bool: 7, string: 8, array: 9, uint64: 10 } as const;

type Value = string | number | bigint | boolean | readonly string[];

interface GgufContent {
  readonly metadata: Readonly<Record<string, Value>>;
  /** Shapes by name; type F32. */
  readonly tensors?: Readonly<Record<string, readonly number[]>>;
}

/** @param content numbers are written as uint32, bigints as uint64 */
export function ggufBytes({ metadata, tensors = {} }: GgufContent): Buffer {
  const entries = Object.entries(metadata).map(([key, value]) => Buffer.concat([string(key), typed(value)]));
  let offset = 0;
  const infos = Object.entries(tensors).map(([name, shape]) => {
    const info = Buffer.concat([string(name), uint32(shape.length), ...shape.map(uint64), uint32(0), uint64(offset)]);
    offset += 4 * shape.reduce((product, length) => product * length, 1);
    return info;
  });
  const head = [Buffer.from('GGUF'), uint32(3), uint64(infos.length), uint64(entries.length)];
  return Buffer.concat([...head, ...entries, ...infos, Buffer.alloc(offset + 32)]);
}

/** A whole GGUF file of some size, no two bytes of its weights alike for long. */
export function ggufModel(bytes = 1_000_000, header: Readonly<Record<string, string | number>> = {}): Buffer {
  const file = ggufBytes({ metadata: { 'general.architecture': 'llama', ...header }, tensors: { a: [bytes / 4] } });
  for (let at = file.length - bytes; at < file.length; at += 1) file[at] = (at * 2_654_435_761) >>> 24;
  return file;
}
function typed(value: Value): Buffer {
  if (typeof value === 'string') return Buffer.concat([uint32(TYPES.string), string(value)]);
  if (typeof value === 'boolean') return Buffer.concat([uint32(TYPES.bool), Buffer.from([Number(value)])]);
  if (typeof value === 'number') return Buffer.concat([uint32(TYPES.uint32), uint32(value)]);
  if (typeof value === 'bigint') return Buffer.concat([uint32(TYPES.uint64), uint64(value)]);
  return Buffer.concat([uint32(TYPES.array), uint32(TYPES.string), uint64(value.length), ...value.map(string)]);
}

function string(text: string): Buffer {
  return Buffer.concat([uint64(Buffer.byteLength(text)), Buffer.from(text)]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
