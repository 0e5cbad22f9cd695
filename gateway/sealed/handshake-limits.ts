/**
 * How often a device may make the gateway compute a handshake.
 *
 * Whoever is nobody's device and holds no invite is refused after one Diffie-Hellman, which costs no more than the HTTP
 * request around it, and counts for nobody. So what is counted here are handshakes of those alone who may have one, each
 * by itself: no stranger, whatever the address, uses up what a device has.
 */
import { HINT } from '../../channel/hint.ts';
import { createRateWindow } from '../rate-window.ts';
import { HintError } from './hint-error.ts';
import type { SealedSource } from './source.ts';

export const HANDSHAKES = {
  perClient: 5,
  perClientMs: 10_000,
  inAll: 50,
  inAllMs: 1000,
  /** Of those in all, kept for devices that were here before: a recorded message 1 can be sent from anywhere. */
  forKnown: 12,
};

/** Clients that are known at a time; of more, the one that was met first is forgotten. */
const MAX_KNOWN = 10_000;

/** Who makes a handshake, from where. */
export interface HandshakeClient {
  /** A paired device's key or an invite, in hexadecimal. */
  readonly name: string;
  readonly source: Pick<SealedSource, 'clientKey' | 'transport'>;
}

export interface HandshakeLimits {
  /** @throws HintError where it is one too many */
  admit(client: HandshakeClient): void;
  /** It has proved by a record who it is; see `HANDSHAKES.forKnown`. */
  met(client: HandshakeClient): void;
}

/** @param now milliseconds that never go back */
export function createHandshakeLimits(now: () => number, handshakes = HANDSHAKES): HandshakeLimits {
  const { perClient, perClientMs, inAll, inAllMs, forKnown } = handshakes;
  const ofClient = createRateWindow({ limit: perClient, windowMs: perClientMs, now });
  // Apart, so that a relay can't keep out those who come without it.
  const ofAll = createRateWindow({ limit: inAll, windowMs: inAllMs, now });
  const ofNew = createRateWindow({ limit: inAll - forKnown, windowMs: inAllMs, now });
  const known = new Set<string>();
  return {
    admit(client) {
      const { transport, clientKey } = client.source;
      const name = `${client.name} ${clientKey}`;
      const isKnown = known.has(placeOf(client));
      const isFull = ofAll.retryAfterS(transport) ?? (isKnown ? undefined : ofNew.retryAfterS(transport));
      if (ofClient.retryAfterS(name) !== undefined || isFull !== undefined) throw new HintError(HINT.rateLimited);
      ofClient.count(name);
      ofAll.count(transport);
      if (!isKnown) ofNew.count(transport);
    },
    met(client) {
      known.add(placeOf(client));
      const [first] = known;
      if (known.size > MAX_KNOWN && first !== undefined) known.delete(first);
    },
  };
}

/** Through a relay the client's key is the relay's word, and another one with every connection. */
function placeOf({ name, source: { transport, clientKey } }: HandshakeClient): string {
  return transport === 'relay' ? `${name} relay` : `${name} ${clientKey}`;
}
