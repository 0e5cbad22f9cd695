/**
 * Agents' keys. None is stored: each is the first half of HMAC-SHA512(master key, "svc-agent-v1" ‖ u32 index), so that
 * the words of a backup bring them all back.
 */
import { hmac } from '@noble/hashes/hmac.js';
import { sha512 } from '@noble/hashes/sha2.js';
import { concatBytes, encodeU32, utf8ToBytes } from '../channel/bytes.ts';
import type { AgentKey, MasterKey } from './secret-keys.ts';
import { asAgentKey, SECRET_BYTES } from './secret-keys.ts';

const LABEL = utf8ToBytes('svc-agent-v1');
/** Agents are counted by an unsigned 32-bit number. */
export const MAX_AGENT_INDEX = 0xffff_ffff;

/** @throws RangeError for an index that is no u32, or, once in 2^128, one whose key the curve does not have */
export function deriveAgentKey(master: MasterKey, index: number): AgentKey {
  if (!Number.isInteger(index) || index < 0 || index > MAX_AGENT_INDEX)
    throw new RangeError(`no agent has index ${index}`);
  return asAgentKey(hmac(sha512, master, concatBytes(LABEL, encodeU32(index))).slice(0, SECRET_BYTES));
}
