/**
 * How much is tried, and from which random numbers. Long counts are sampled unless THOROUGH is set; SEED repeats a run.
 */
import { rngChacha20 } from '@noble/ciphers/chacha.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';

export const THOROUGH = process.env['THOROUGH'] !== undefined && process.env['THOROUGH'] !== '';
export const SEED = Number(process.env['SEED'] ?? 20_261_121);

/** For the tests that take minutes when thorough, on a busy machine: it only turns a hang into a failure. */
export const LONG = { timeout: 900_000 };

/** How often: a sample by default, all of it when thorough. */
export function times(sample: number, thorough: number): number {
  return THOROUGH ? thorough : sample;
}

/** For fast-check. */
export function runs(sample: number, thorough: number): { seed: number; numRuns: number } {
  return { seed: SEED, numRuns: times(sample, thorough) };
}

/** A generator of its own for each name, the same in every run with the same seed. */
export function seededBytes(name: string): (length: number) => Uint8Array {
  const generator = rngChacha20(sha256(utf8ToBytes(`${SEED} ${name}`)));
  return (length) => (length === 0 ? new Uint8Array(0) : generator.randomBytes(length));
}

/** An integer from 0 to `below`, not included. */
export function seededInteger(name: string): (below: number) => number {
  const bytes = seededBytes(name);
  return (below) => new DataView(bytes(4).buffer).getUint32(0) % below;
}
