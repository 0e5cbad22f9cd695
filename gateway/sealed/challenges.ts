/**
 * The challenges that devices fetch to be paired by a code.
 *
 * One that nobody has asked with yet is kept nowhere: it says itself when it was issued and that it was issued here. So
 * whoever fetches very many takes nobody's away.
 *
 *     offset  size  field
 *          0     6  issued at, milliseconds since 1970, big-endian
 *          6     4  random
 *         10     6  the beginning of HMAC-SHA256(a key of this run, all before)
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { concatBytes, equalBytes, viewOf } from '../../channel/bytes.ts';
import type { Crypto } from '../../channel/crypto.ts';
import { ID_BYTES, KEY_BYTES } from '../../channel/keys.ts';
import { Challenge, awaitsOwner } from './challenge.ts';

/** From the first request to the answer that pairs: the time to look at one screen and type at another. */
export const CHALLENGE_MS = 120_000;
const STAMP_BYTES = 6;
const RANDOM_BYTES = 4;
const MAC_OFFSET = STAMP_BYTES + RANDOM_BYTES;

export interface Challenges {
  issue(): Pick<Challenge, 'id'>;
  /** One that was issued by this run, and whose time is not over. */
  find(id: Uint8Array): Challenge | undefined;
  /** From now on `find` gives this one: somebody asks with it. */
  keep(challenge: Challenge): void;
  /** Whether somebody at this address waits for the owner. */
  hasWaiting(clientKey: string): boolean;
  /** Forgets those whose time is over. */
  sweep(): void;
  clear(): void;
}

interface ChallengesOptions {
  readonly crypto: Pick<Crypto, 'randomBytes' | 'hmacSha256'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export function createChallenges({ crypto, now }: ChallengesOptions): Challenges {
  const key = crypto.randomBytes(KEY_BYTES);
  const kept = new Map<string, Challenge>();
  const isOver = ({ expiresAtMs }: Challenge): boolean => now() >= expiresAtMs;
  const signed = (stamp: Uint8Array): Uint8Array =>
    concatBytes(stamp, crypto.hmacSha256(key, stamp).subarray(0, ID_BYTES - MAC_OFFSET));
  const findIssued = (id: Uint8Array): Challenge | undefined => {
    if (id.length !== ID_BYTES || !equalBytes(signed(id.subarray(0, MAC_OFFSET)), id)) return undefined;
    return new Challenge(new Uint8Array(id), issuedAtMs(id) + CHALLENGE_MS);
  };
  return {
    issue: () => ({ id: signed(concatBytes(encodeStamp(now()), crypto.randomBytes(RANDOM_BYTES))) }),
    find(id) {
      const challenge = kept.get(bytesToHex(id)) ?? findIssued(id);
      return challenge === undefined || isOver(challenge) ? undefined : challenge;
    },
    keep: (challenge) => void kept.set(bytesToHex(challenge.id), challenge),
    hasWaiting: (clientKey) =>
      [...kept.values()].some(({ state }) => awaitsOwner(state) && state.clientKey === clientKey),
    sweep() {
      for (const [name, challenge] of kept) if (isOver(challenge)) kept.delete(name);
    },
    clear: () => kept.clear(),
  };
}

function encodeStamp(atMs: number): Uint8Array {
  const bytes = new Uint8Array(8);
  viewOf(bytes).setBigUint64(0, BigInt(Math.floor(atMs)));
  return bytes.subarray(8 - STAMP_BYTES);
}

function issuedAtMs(id: Uint8Array): number {
  const view = viewOf(id);
  return view.getUint16(0) * 2 ** 32 + view.getUint32(2);
}
