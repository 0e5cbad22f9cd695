/** How often anybody may ask for what costs the gateway a handshake. Counted before anything is computed. */
import { HINT } from '../../channel/hint.ts';
import { createRateWindow } from '../rate-window.ts';
import { HintError } from './hint-error.ts';
import type { SealedSource } from './source.ts';

export const HANDSHAKES = { perParty: 5, perPartyMs: 10_000, inAll: 50, inAllMs: 1000 };
/** Handshakes with an invite that failed: somebody tries secrets. */
export const FAILED_PAIRINGS_PER_MINUTE = 5;
/** Calls that no session of ours could have made. */
export const FAILED_CALLS_PER_MINUTE = 120;

export interface HandshakeLimits {
  /** @throws HintError where it is one too many */
  admitHandshake(source: Pick<SealedSource, 'party' | 'transport'>): void;
  admitPairing(party: string): void;
  admitCall(party: string): void;
  pairingFailed(party: string): void;
  callFailed(party: string): void;
}

/** @param now milliseconds that never go back */
export function createHandshakeLimits(now: () => number, handshakes = HANDSHAKES): HandshakeLimits {
  const ofParty = createRateWindow({ limit: handshakes.perParty, windowMs: handshakes.perPartyMs, now });
  const ofAll = createRateWindow({ limit: handshakes.inAll, windowMs: handshakes.inAllMs, now });
  const failedPairings = createRateWindow({ limit: FAILED_PAIRINGS_PER_MINUTE, now });
  const failedCalls = createRateWindow({ limit: FAILED_CALLS_PER_MINUTE, now });
  const refuseIf = (waitS: number | undefined): void => {
    if (waitS !== undefined) throw new HintError(HINT.rateLimited);
  };
  return {
    admitHandshake({ party, transport }) {
      refuseIf(ofParty.retryAfterS(party));
      // Apart, so that a relay can't keep out those who come without it.
      refuseIf(ofAll.retryAfterS(transport));
      ofParty.count(party);
      ofAll.count(transport);
    },
    admitPairing: (party) => refuseIf(failedPairings.retryAfterS(party)),
    admitCall: (party) => refuseIf(failedCalls.retryAfterS(party)),
    pairingFailed: (party) => failedPairings.count(party),
    callFailed: (party) => failedCalls.count(party),
  };
}
