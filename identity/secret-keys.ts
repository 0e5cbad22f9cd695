/**
 * One type per role of a 32-byte secret, so that the compiler keeps them apart: what seals the database can't be passed
 * where an access key is signed. At run time each is a plain Uint8Array. None of them is ever written out but by the
 * secret store and, of the master key, as the words of a backup.
 */
import { secp256k1 } from '@noble/curves/secp256k1.js';

declare const role: unique symbol;
type Role<Name extends string> = Uint8Array & { readonly [role]: Name };

/** Signs the access keys that are good for everything; every agent's key is derived from it. secp256k1. */
export type MasterKey = Role<'master key'>;
/** Signs the access keys of one agent. secp256k1. */
export type AgentKey = Role<'agent key'>;
/** gs: what a paired device knows this gateway by. X25519 (RFC 7748 §5 clamps it). */
export type GatewayKey = Role<'gateway key'>;
/** Seals what the database holds of secrets. */
export type ColumnKey = Role<'column key'>;
/** Seals how long the audit log is. */
export type AuditKey = Role<'audit key'>;

export type SigningKey = MasterKey | AgentKey;

export const SECRET_BYTES = 32;

function ofRole<Key extends Uint8Array>(bytes: Uint8Array, isRole: (bytes: Uint8Array) => bytes is Key): Key {
  if (!isRole(bytes)) throw new RangeError(`these ${bytes.length} bytes can't be a key of this role`);
  return bytes;
}

/** SEC 1 §3.2.1: from 1 to the group's order less 1. All but one in 2^128 of the 32-byte strings are. */
const isScalar = (bytes: Uint8Array): boolean =>
  bytes.length === SECRET_BYTES && secp256k1.utils.isValidSecretKey(bytes);
const isSecret = (bytes: Uint8Array): boolean => bytes.length === SECRET_BYTES;

/** Each of these checks what its role asks of the bytes. @throws RangeError */
export const asMasterKey = (bytes: Uint8Array): MasterKey =>
  ofRole(bytes, (candidate): candidate is MasterKey => isScalar(candidate));
export const asAgentKey = (bytes: Uint8Array): AgentKey =>
  ofRole(bytes, (candidate): candidate is AgentKey => isScalar(candidate));
export const asGatewayKey = (bytes: Uint8Array): GatewayKey =>
  ofRole(bytes, (candidate): candidate is GatewayKey => isSecret(candidate));
export const asColumnKey = (bytes: Uint8Array): ColumnKey =>
  ofRole(bytes, (candidate): candidate is ColumnKey => isSecret(candidate));
export const asAuditKey = (bytes: Uint8Array): AuditKey =>
  ofRole(bytes, (candidate): candidate is AuditKey => isSecret(candidate));
