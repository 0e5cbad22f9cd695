/** What running a vector file gave. Pure, like every vector check here: they run in Node and in a browser alike. */
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';

export interface Outcome {
  readonly passed: number;
  /** Which rows failed, by name or number. */
  readonly failed: readonly string[];
}

export interface Row {
  readonly name: string;
  readonly check: () => boolean;
}

/** Runs every row. One that throws has failed; a row that must be refused says so in its own check. */
export function runRows(rows: readonly Row[]): Outcome {
  const failed = rows.filter((row) => !holds(row.check)).map((row) => row.name);
  return { passed: rows.length - failed.length, failed };
}

function holds(check: () => boolean): boolean {
  try {
    return check();
  } catch {
    return false;
  }
}

/** True if `compute` threw or found nothing: the ways in which a primitive refuses its input. */
export function isRefused(compute: () => unknown): boolean {
  try {
    return compute() === undefined;
  } catch {
    return true;
  }
}

export const fromHex = (hex: string): Uint8Array => hexToBytes(hex);

export function isHex(bytes: Uint8Array | undefined, hex: string): boolean {
  return bytes !== undefined && bytesToHex(new Uint8Array(bytes)) === hex.toLowerCase();
}
