/** The files that one model is made of. */

/** llama.cpp's naming of a model split by `gguf-split`: `name-00001-of-00003.gguf`. */
const FIRST_PART = /^(.*)-00001-of-(\d{5})\.gguf$/;

/** @param path of the model, or of its first part. @returns all parts in order, or just the one file */
export function modelFiles(path: string): readonly string[] {
  const [, stem, total] = FIRST_PART.exec(path) ?? [];
  if (stem === undefined || total === undefined) return [path];
  return Array.from(
    { length: Number(total) },
    (_, index) => `${stem}-${String(index + 1).padStart(5, '0')}-of-${total}.gguf`,
  );
}
