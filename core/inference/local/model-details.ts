/**
 * What a GGUF file says about the model in it. Only its header is read, with Hugging Face's parser, one file at a time
 * (a large vocabulary keeps the parser busy for about a second); what was found is kept in `state.db`.
 *
 * The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Its keys are used under their own names.
 */
import { stat } from 'node:fs/promises';
import * as z from 'zod';
import type { Database } from '../../../storage/database.ts';
import { createFileCache } from './file-cache.ts';
import { memoryFacts, memoryFactsSchema } from './memory-facts.ts';
import { generatesText } from './model-capabilities.ts';
import type { LocalModel } from '../catalog.ts';
import { modelFiles } from './model-files.ts';

const modelDetailsSchema = z.strictObject({
  /** `general.architecture`: the family, such as `llama` or `qwen3`. */
  architecture: z.string(),
  /** Counted from the shapes of the tensors. */
  parameterCount: z.int().nonnegative(),
  /** `4.66M`, `7.2B`. */
  parameterSize: z.string(),
  /** llama.cpp's name of `general.file_type`, such as `Q4_K_M`; `unknown` where the file has none. */
  quantization: z.string(),
  contextTokens: z.int().positive().optional(),
  embeddingLength: z.int().positive().optional(),
  /** False for a model that only makes embeddings. */
  isGenerative: z.boolean(),
  /** The Jinja template of a conversation. */
  chatTemplate: z.string().optional(),
  /** `general.license`, an SPDX expression as a rule. */
  license: z.string().optional(),
  /** From which `estimateMemory` tells how much memory the model takes. */
  memory: memoryFactsSchema,
  /** Every key whose value is a short text, a number or a truth value; the lists of tokens are not in here. */
  metadata: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});
/** `ModelDetails`, and what the memory that the model takes is reckoned from. */
export type LocalModelDetails = Readonly<z.output<typeof modelDetailsSchema>>;

export interface ModelDetailsReader {
  /** Undefined for a file that is no readable GGUF. */
  read(model: LocalModel): Promise<LocalModelDetails | undefined>;
}

/** Longer texts are templates and licences, which are read by name or not at all. */
const MAX_METADATA_TEXT = 1000;

export function createModelDetailsReader({ database }: { readonly database: Database }): ModelDetailsReader {
  const cache = createFileCache(database, 'model_details');
  const underWay = new Map<string, Promise<LocalModelDetails | undefined>>();
  let last: Promise<unknown> = Promise.resolve();

  async function readAndKeep(model: LocalModel): Promise<LocalModelDetails | undefined> {
    const details = await readFiles(model).catch(() => undefined);
    if (details !== undefined) cache.store(model, JSON.stringify(details));
    return details;
  }

  return {
    async read(model) {
      const kept = parseKept(cache.find(model));
      if (kept !== undefined) return kept;
      const running = underWay.get(model.path);
      if (running !== undefined) return running;
      const reading = last.then(() => readAndKeep(model)).finally(() => underWay.delete(model.path));
      underWay.set(model.path, reading);
      // Whatever became of it, the next file is read.
      last = reading.catch(() => undefined);
      return reading;
    },
  };
}

/** Entries that another version of the program wrote differently count as none. */
function parseKept(text: string | undefined): LocalModelDetails | undefined {
  return text === undefined ? undefined : modelDetailsSchema.safeParse(JSON.parse(text)).data;
}

/** @throws {Error} for what is no GGUF, or declares more than it can hold */
async function readFiles(model: LocalModel): Promise<LocalModelDetails> {
  const [first, ...others] = modelFiles(model.path);
  if (first === undefined) throw new TypeError('a model has at least one file');
  const { metadata, parameterCount } = await readHeader(first);
  let count = parameterCount;
  for (const path of others) count += (await readHeader(path)).parameterCount;
  const { GGMLFileQuantizationType: fileTypes } = await parser();
  return describe(metadata, { parameterCount: count, weightBytes: model.sizeBytes, fileTypes });
}

/** With its tables of everything that the hub knows it would take a tenth of the service's start. */
function parser() {
  return import('@huggingface/gguf');
}

async function readHeader(
  path: string,
): Promise<{ readonly metadata: Readonly<Record<string, unknown>>; readonly parameterCount: number }> {
  const { gguf } = await parser();
  const header = await gguf(path, { allowLocalFile: true, computeParametersCount: true });
  const { metadata, parameterCount, tensorInfoByteRange } = header;
  // Past the end of a file the parser reads zeros.
  if (tensorInfoByteRange[1] > (await stat(path)).size) throw new Error('the header is cut off');
  return { metadata: { ...metadata }, parameterCount };
}

interface Facts {
  readonly parameterCount: number;
  readonly weightBytes: number;
  /** Names by number. */
  readonly fileTypes: Readonly<Record<number, string>>;
}

function describe(
  raw: Readonly<Record<string, unknown>>,
  { parameterCount, weightBytes, fileTypes }: Facts,
): LocalModelDetails {
  const text = (key: string): string | undefined => (typeof raw[key] === 'string' ? raw[key] : undefined);
  const metadata = scalars(raw);
  const architecture = text('general.architecture') ?? 'unknown';
  const fileType = metadata['general.file_type'];
  // Through the schema, so that what is kept can be read back.
  return modelDetailsSchema.parse({
    architecture,
    parameterCount,
    parameterSize: sizeLabel(parameterCount),
    quantization: typeof fileType === 'number' ? (fileTypes[fileType] ?? 'unknown') : 'unknown',
    contextTokens: positive(metadata[`${architecture}.context_length`]),
    embeddingLength: positive(metadata[`${architecture}.embedding_length`]),
    isGenerative: generatesText(architecture, metadata),
    chatTemplate: text('tokenizer.chat_template'),
    license: text('general.license'),
    memory: memoryFacts(raw, weightBytes),
    metadata,
  });
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

/** Without `version`, `tensor_count` and `kv_count`, which the parser adds to the file's own keys. */
function scalars(raw: Readonly<Record<string, unknown>>): Record<string, string | number | boolean> {
  const found: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(raw)) {
    if (!key.includes('.')) continue;
    if (typeof value === 'bigint') found[key] = Number(value);
    else if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) found[key] = value;
    else if (typeof value === 'string' && value.length <= MAX_METADATA_TEXT) found[key] = value;
  }
  return found;
}

/** As Ollama writes it: one digit of billions, two of millions, and none where there is nothing after the point. */
function sizeLabel(count: number): string {
  if (count >= 1e9) return `${shorten(count / 1e9, 1)}B`;
  if (count >= 1e6) return `${shorten(count / 1e6, 2)}M`;
  return count >= 1e3 ? `${Math.round(count / 1e3)}K` : String(count);
}

function shorten(value: number, digits: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(digits);
}
