/** One challenge, and what has become of it. */
import type { CpaceSide } from '../../channel/cpace.ts';
import type { HintCode } from '../../channel/hint.ts';
import type { Psk, PublicKey } from '../../channel/keys.ts';
import type { PendingApproval } from '../../core/approvals/approval-queue.ts';
import type { DeviceDescription } from '../../identity/pairing.ts';

/** Somebody asked, and the owner sees it. */
export interface PairingRequest {
  readonly clientKey: string;
  /** How many devices had been paired, ever, when it asked: it takes the place of none that came after it. */
  readonly devicesBefore: number;
  /** As the owner was shown it. */
  readonly description: DeviceDescription;
  readonly pending: PendingApproval;
  /** Takes the question away. */
  readonly withdraw: () => void;
}

export interface Waiting extends PairingRequest {
  readonly kind: 'waiting';
  readonly code: string;
  /** 0 for the first. */
  readonly attempt: number;
  readonly side: CpaceSide;
  /** The hash of the proof before this try, which was wrong. */
  readonly refused: Uint8Array | undefined;
}

export interface Proved extends PairingRequest {
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

export type ChallengeState =
  { readonly kind: 'issued' } | Waiting | Proved | Paired | { readonly kind: 'over'; readonly why: HintCode };

type Kind = ChallengeState['kind'];

/** A device asks with it; proves a code that is wrong, or right; is paired; or it ends before: denied, too late, left. */
export type ChallengeEvent = 'asked' | 'missed' | 'proved' | 'paired' | 'ended';

/** What each event makes of a challenge. What is not here is refused. */
export const CHALLENGE_TRANSITIONS: Readonly<Record<Kind, Readonly<Partial<Record<ChallengeEvent, Kind>>>>> = {
  issued: { asked: 'waiting' },
  waiting: { missed: 'waiting', proved: 'proved', ended: 'over' },
  proved: { paired: 'paired', ended: 'over' },
  paired: {},
  over: {},
};

export class Challenge {
  readonly id: Uint8Array;
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number;
  #state: ChallengeState = { kind: 'issued' };

  constructor(id: Uint8Array, expiresAtMs: number) {
    this.id = id;
    this.expiresAtMs = expiresAtMs;
  }

  get state(): ChallengeState {
    return this.#state;
  }

  accepts(event: ChallengeEvent): boolean {
    return CHALLENGE_TRANSITIONS[this.#state.kind][event] !== undefined;
  }

  /** @throws TypeError for what is not in the table */
  advance(event: ChallengeEvent, next: ChallengeState): void {
    const { kind } = this.#state;
    if (CHALLENGE_TRANSITIONS[kind][event] !== next.kind)
      throw new TypeError(`a challenge that is ${kind} can't become ${next.kind} by being ${event}`);
    this.#state = next;
  }
}

/** Whether the owner is asked. */
export function awaitsOwner(state: ChallengeState | undefined): state is Waiting | Proved {
  return state?.kind === 'waiting' || state?.kind === 'proved';
}
