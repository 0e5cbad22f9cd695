/** The seal over the head of the audit log: HMAC-SHA256 under a key of its own, which is not in the database. */
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import type { AuditKey } from './secret-keys.ts';

export function createAuditSeal(key: AuditKey): (message: Uint8Array) => Uint8Array {
  return (message) => hmac(sha256, key, message);
}
