import { readFileSync } from 'node:fs';
import { VECTOR_FILES } from './all.ts';

/** The content of every vector file, by name. */
export function readVectors(): Readonly<Record<string, unknown>> {
  return Object.fromEntries(VECTOR_FILES.map(({ name }) => [name, readVector(name)]));
}

function readVector(name: string): unknown {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));
}
