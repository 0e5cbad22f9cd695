/** Which files of a repository are one model, and which model is meant. Pure. */
import { parseGGUFQuantLabel, parseGgufShardFilename } from '@huggingface/gguf';
import type { HubFile } from './hub.ts';

export interface ModelCandidate {
  /** Its path without extension and part number. */
  readonly name: string;
  /** In capitals, such as `Q4_K_M`; undefined where the name says none. */
  readonly quantization: string | undefined;
  /** In order, all parts of a split model. */
  readonly files: readonly HubFile[];
  readonly sizeBytes: number;
}

/** @returns the whole models, the smallest first; projectors and the tables of a quantizer are none */
export function modelCandidates(files: readonly HubFile[]): readonly ModelCandidate[] {
  const groups = new Map<string, HubFile[]>();
  const totals = new Map<string, number>();
  for (const file of files.filter(({ path }) => isModelFile(path))) {
    const shard = parseGgufShardFilename(file.path);
    const name = shard?.prefix ?? file.path.slice(0, -'.gguf'.length);
    groups.set(name, [...(groups.get(name) ?? []), file]);
    totals.set(name, Number(shard?.total ?? 1));
  }
  return [...groups]
    .filter(([name, parts]) => parts.length === totals.get(name))
    .map(([name, parts]) => ({
      name,
      quantization: parseGGUFQuantLabel(name),
      files: parts.toSorted((one, other) => (one.path < other.path ? -1 : 1)),
      sizeBytes: parts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    }))
    .toSorted((one, other) => one.sizeBytes - other.sizeBytes);
}

function isModelFile(path: string): boolean {
  return path.endsWith('.gguf') && !/mmproj|imatrix/i.test(path);
}

/**
 * The quantizations to take where nobody says: the usual compromise, then what is nearest to it in size and quality,
 * then what is not quantized at all.
 */
const PREFERENCE = ['Q4_K_M', 'Q4_0', 'Q5_K_M', 'Q8_0', 'Q4_K_S', 'IQ4_XS', 'Q5_K_S', 'Q6_K', 'Q3_K_M', 'BF16', 'F16'];

/**
 * @param wanted a quantization in any case, or the name or path of a file
 * @returns all that it may mean: one where that is clear
 */
export function chooseModel(
  candidates: readonly ModelCandidate[],
  wanted: string | undefined,
): readonly ModelCandidate[] {
  if (wanted !== undefined) return candidates.filter((one) => isMeant(one, wanted));
  if (candidates.length <= 1) return candidates;
  for (const quantization of PREFERENCE) {
    const found = candidates.filter((one) => one.quantization === quantization);
    if (found.length > 0) return found;
  }
  return candidates;
}

function isMeant({ name, quantization, files }: ModelCandidate, wanted: string): boolean {
  const fileName = name.slice(name.lastIndexOf('/') + 1);
  const names = [name, fileName, ...files.flatMap(({ path }) => [path, path.slice(path.lastIndexOf('/') + 1)])];
  return quantization === wanted.toUpperCase() || names.includes(wanted);
}
