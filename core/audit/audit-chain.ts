/**
 * How the audit log holds together. Each row's hash covers the one before it, so no row can be changed, taken out or
 * moved without the change of all that follow; and the seal over the last one, made with a key that is not in the
 * database, keeps whoever would change them all, or cut the end off, from making it look whole.
 *
 *     hash(n) = SHA-256("svc-v1 audit row" ‖ hash(n − 1) ‖ u64 n ‖ u64 time in ms ‖ entry as JSON), hash(0) = 32 zero bytes
 *     seal    = MAC("svc-v1 audit head" ‖ u64 count ‖ hash(count))
 */
import { createHash, timingSafeEqual } from 'node:crypto';

/** A message authentication code under a key that its caller does not see. */
export type Seal = (message: Uint8Array) => Uint8Array;

/** Where the log ends. */
export interface AuditHead {
  readonly count: number;
  readonly hash: Uint8Array;
}

export const EMPTY_HEAD: AuditHead = { count: 0, hash: new Uint8Array(32) };

export interface ChainedRow {
  readonly seq: number;
  readonly atMs: number;
  readonly entry: string;
}

export function hashOfRow(previousHash: Uint8Array, { seq, atMs, entry }: ChainedRow): Uint8Array {
  return createHash('sha256')
    .update('svc-v1 audit row')
    .update(previousHash)
    .update(encodeU64(seq))
    .update(encodeU64(atMs))
    .update(entry)
    .digest();
}

export function sealOfHead({ count, hash }: AuditHead, seal: Seal): Uint8Array {
  return seal(Buffer.concat([Buffer.from('svc-v1 audit head'), encodeU64(count), hash]));
}

export function isSealOfHead(given: Uint8Array, head: AuditHead, seal: Seal): boolean {
  return isSame(given, sealOfHead(head, seal));
}

export function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Of any integer that a column may hold: a row that was tampered with is to be found out, not to stop the search. */
function encodeU64(value: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt.asUintN(64, BigInt(value)));
  return bytes;
}
