/**
 * The challenges that devices fetch to be paired by a code, and what has become of each:
 *
 *     issued ── asked ─► waiting ── proved ─► proved ── confirmed ─► paired
 *                           └───────────── denied, too late, wrong ──┴─► over
 *
 * In memory alone: a challenge of an earlier run is none.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import type { CpaceSide } from '../../channel/cpace.ts';
import type { HintCode } from '../../channel/hint.ts';
import type { Psk, PublicKey } from '../../channel/keys.ts';
import { ID_BYTES } from '../../channel/keys.ts';
import type { PendingApproval } from '../../core/approvals/approval-queue.ts';
import type { DeviceDescription } from '../../identity/pairing.ts';

/** From the first request to the answer that pairs: the time to look at one screen and type at another. */
export const CHALLENGE_MS = 120_000;
export const MAX_CHALLENGES = 256;

/** Somebody asked, and the owner sees it. */
export interface Asked {
  readonly party: string;
  /** As the owner was shown it. */
  readonly description: DeviceDescription;
  readonly pending: PendingApproval;
  /** Takes the question away. */
  readonly withdraw: () => void;
}

export interface Waiting extends Asked {
  readonly kind: 'waiting';
  readonly code: string;
  /** 0 for the first. */
  readonly attempt: number;
  readonly side: CpaceSide;
  /** The hash of the proof before this try, which was wrong. */
  readonly refused: Uint8Array | undefined;
}

export interface Proved extends Asked {
  readonly kind: 'proved';
  /** The hash of the proof, and psk0 that came of it. */
  readonly proof: Uint8Array;
  readonly psk: Psk;
}

export interface Paired {
  readonly kind: 'paired';
  readonly deviceKey: PublicKey;
  readonly deviceId: string;
  readonly answer: Uint8Array;
}

type State =
  { readonly kind: 'issued' } | Waiting | Proved | Paired | { readonly kind: 'over'; readonly why: HintCode };

export interface Challenge {
  readonly id: Uint8Array;
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number;
  state: State;
}

export interface Challenges {
  /** Where there are too many, the oldest goes that nobody has asked with. */
  issue(): Challenge;
  /** One whose time is not over. */
  find(id: Uint8Array): Challenge | undefined;
  /** Whether somebody at this address waits for the owner. */
  hasWaiting(party: string): boolean;
  /** Forgets those whose time is over. */
  sweep(): void;
  clear(): void;
}

interface ChallengesOptions {
  readonly randomBytes: (length: number) => Uint8Array;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export function createChallenges({ randomBytes, now }: ChallengesOptions): Challenges {
  // In the order in which they were issued, which is the order in which they end.
  const challenges = new Map<string, Challenge>();
  const isOver = ({ expiresAtMs }: Challenge): boolean => now() >= expiresAtMs;
  const drop = (gone: (challenge: Challenge) => boolean): void => {
    for (const [name, challenge] of challenges) if (gone(challenge)) challenges.delete(name);
  };
  const makeRoom = (): void => {
    drop(isOver);
    if (challenges.size < MAX_CHALLENGES) return;
    const unused = [...challenges].find(([, { state }]) => !isAsked(state));
    if (unused !== undefined) challenges.delete(unused[0]);
  };
  return {
    issue() {
      makeRoom();
      const challenge: Challenge = {
        id: randomBytes(ID_BYTES),
        expiresAtMs: now() + CHALLENGE_MS,
        state: { kind: 'issued' },
      };
      challenges.set(bytesToHex(challenge.id), challenge);
      return challenge;
    },
    find(id) {
      const challenge = challenges.get(bytesToHex(id));
      return challenge === undefined || isOver(challenge) ? undefined : challenge;
    },
    hasWaiting: (party) => [...challenges.values()].some(({ state }) => isAsked(state) && state.party === party),
    sweep: () => drop(isOver),
    clear: () => challenges.clear(),
  };
}

function isAsked(state: State): state is Waiting | Proved {
  return state.kind === 'waiting' || state.kind === 'proved';
}
