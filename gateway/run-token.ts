/**
 * The token of one run of the server. It lies in `run.json`, which only its owner can read; showing it proves that a
 * request comes from them, or from a page that this very server sent them.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

export const RUN_TOKEN_HEADER = 'x-postern-run-token';

export function createRunToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Compared by their hashes, in constant time and whatever their lengths. */
export function isRunToken(given: string | readonly string[] | undefined, expected: string): boolean {
  return typeof given === 'string' && timingSafeEqual(sha256(given), sha256(expected));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
