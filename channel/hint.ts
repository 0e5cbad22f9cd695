/**
 * What a refused request is told, in the clear: a code that anybody on the way could have written. Whoever gets one acts
 * on it once at most, never falls back to plain HTTP, and shows it to nobody as a fact.
 */
import type { ChannelErrorCode } from './errors.ts';

export const HINT = {
  handshakeRefused: 1,
  /** Make a new handshake. */
  unknownSession: 2,
  callNumber: 3,
  tooManyCalls: 4,
  malformed: 5,
  rateLimited: 6,
  shuttingDown: 7,
  /** Of pairing by a code: there is no such challenge, it was used, or its time is over. */
  challengeOver: 8,
  pairingDenied: 9,
  /** The code was wrong as often as it may be. */
  codeRefused: 10,
  tooManyPairings: 11,
  notOffered: 12,
} as const;

export type HintCode = (typeof HINT)[keyof typeof HINT];

/** What each failure says outwardly. A code without a row here does not compile. */
const HINT_OF: Readonly<Record<ChannelErrorCode, HintCode>> = {
  handshake_refused: HINT.handshakeRefused,
  unknown_session: HINT.unknownSession,
  call_number: HINT.callNumber,
  too_many_calls: HINT.tooManyCalls,
  malformed: HINT.malformed,
  record_refused: HINT.malformed,
  truncated: HINT.malformed,
};

export function hintOf(code: ChannelErrorCode): HintCode {
  return HINT_OF[code];
}
