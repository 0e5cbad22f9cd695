/**
 * A model of about 135 million parameters with random weights (Q8_0), for measuring speed: it costs what a real one of
 * its size costs, and says nothing. Its tokenizer and template are the built-in model's.
 *
 * The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */
import { createCipheriv } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { gguf, GGUFValueType, type MetadataValue } from '@huggingface/gguf';

const LAYERS = 21;
const EMBEDDING = 768;
const FEED_FORWARD = 2048;
const HEADS = 12;
const KEY_VALUE_HEADS = 4;
const HEAD_LENGTH = 64;

const SIZES: Readonly<Record<string, number>> = {
  'qwen3.block_count': LAYERS,
  'qwen3.embedding_length': EMBEDDING,
  'qwen3.feed_forward_length': FEED_FORWARD,
  'qwen3.attention.head_count': HEADS,
  'qwen3.attention.head_count_kv': KEY_VALUE_HEADS,
};

const ALIGNMENT = 32;
const TENSOR_TYPE = { F32: 0, Q8_0: 8 } as const;
/** A block of Q8_0: a 16-bit float as scale, then 32 numbers of 8 bits. */
const BLOCK_ELEMENTS = 32;
const BLOCK_BYTES = 34;
/** 2^-12 as a 16-bit float: the weights' standard deviation is then about 0.02, as after a usual initialisation. */
const SCALE = 0x0c00;

interface Tensor {
  readonly name: string;
  readonly shape: readonly number[];
}

/** @returns the number of its parameters */
export async function writeRandomModel(path: string, builtInPath: string): Promise<number> {
  const { typedMetadata } = await gguf(builtInPath, { allowLocalFile: true, typedMetadata: true });
  const entries = Object.entries(typedMetadata).filter(([key]) => key.includes('.'));
  const tensors = modelTensors(Number(typedMetadata['qwen3.vocab_size']?.value));
  const data = tensors.map((tensor) => weights(tensor));
  let offset = 0;
  const infos = tensors.map((tensor, index) => {
    const info = encodeInfo(tensor, offset);
    offset += aligned(data[index]?.length ?? 0);
    return info;
  });
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    uint32(3),
    uint64(tensors.length),
    uint64(entries.length),
    ...entries.map(([key, entry]) => {
      const subType = 'subType' in entry ? entry.subType : undefined;
      return Buffer.concat([string(key), uint32(entry.type), encode(SIZES[key] ?? entry.value, entry.type, subType)]);
    }),
    ...infos,
  ]);
  await writeFile(path, [head, ...data].map(padded));
  return tensors.reduce((sum, { shape }) => sum + elements(shape), 0);
}

function modelTensors(vocabulary: number): readonly Tensor[] {
  const heads = HEADS * HEAD_LENGTH;
  const keys = KEY_VALUE_HEADS * HEAD_LENGTH;
  const layer = (index: number): readonly Tensor[] =>
    Object.entries({
      attn_norm: [EMBEDDING],
      attn_q: [EMBEDDING, heads],
      attn_k: [EMBEDDING, keys],
      attn_v: [EMBEDDING, keys],
      attn_output: [heads, EMBEDDING],
      attn_q_norm: [HEAD_LENGTH],
      attn_k_norm: [HEAD_LENGTH],
      ffn_norm: [EMBEDDING],
      ffn_gate: [EMBEDDING, FEED_FORWARD],
      ffn_up: [EMBEDDING, FEED_FORWARD],
      ffn_down: [FEED_FORWARD, EMBEDDING],
    }).map(([name, shape]) => ({ name: `blk.${index}.${name}.weight`, shape }));
  return [
    { name: 'token_embd.weight', shape: [EMBEDDING, vocabulary] },
    { name: 'output_norm.weight', shape: [EMBEDDING] },
    ...Array.from({ length: LAYERS }, (_, index) => layer(index)).flat(),
  ];
}

/** Norms are ones; matrices are noise, the same at each run. */
function weights({ name, shape }: Tensor): Buffer {
  const count = elements(shape);
  if (shape.length === 1) return Buffer.from(Float32Array.from({ length: count }, () => 1).buffer);
  const key = Buffer.alloc(16, name);
  const noise = createCipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(
    Buffer.alloc((count / BLOCK_ELEMENTS) * BLOCK_BYTES),
  );
  for (let at = 0; at < noise.length; at += BLOCK_BYTES) noise.writeUInt16LE(SCALE, at);
  return noise;
}

function encodeInfo({ name, shape }: Tensor, offset: number): Buffer {
  const type = shape.length === 1 ? TENSOR_TYPE.F32 : TENSOR_TYPE.Q8_0;
  return Buffer.concat([string(name), uint32(shape.length), ...shape.map(uint64), uint32(type), uint64(offset)]);
}

function encode(value: MetadataValue | undefined, type: GGUFValueType, subType?: GGUFValueType): Buffer {
  if (Array.isArray(value) && subType !== undefined) {
    return Buffer.concat([uint32(subType), uint64(value.length), ...value.map((one) => encode(one, subType))]);
  }
  switch (type) {
    case GGUFValueType.STRING:
      return string(String(value));
    case GGUFValueType.BOOL:
      return Buffer.from([Number(value)]);
    case GGUFValueType.FLOAT32:
      return Buffer.from(Float32Array.of(Number(value)).buffer);
    case GGUFValueType.INT32:
    case GGUFValueType.UINT32:
      return uint32(Number(value) >>> 0);
    default:
      throw new TypeError(`the built-in model has a value of the type ${type}, which nobody expected`);
  }
}

function elements(shape: readonly number[]): number {
  return shape.reduce((product, length) => product * length, 1);
}

function aligned(length: number): number {
  return Math.ceil(length / ALIGNMENT) * ALIGNMENT;
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(aligned(bytes.length) - bytes.length)]);
}

function string(text: string): Buffer {
  return Buffer.concat([uint64(Buffer.byteLength(text)), Buffer.from(text)]);
}

function uint32(value: number): Buffer {
  return Buffer.from(Uint32Array.of(value).buffer);
}

function uint64(value: number): Buffer {
  return Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
}
