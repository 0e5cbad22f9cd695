/** How a device and its gateway find each other at a relay that may know neither. */
import { concatBytes, encodeU32, utf8ToBytes } from './bytes.ts';
import type { Crypto } from './crypto.ts';
import { expandLabel } from './hkdf.ts';
import type { Psk, RoutingId } from './keys.ts';
import { asRoutingId, ROUTING_ID_BYTES } from './keys.ts';

export const TAG_BYTES = 16;

const DAY_MS = 86_400_000;

/** rid = the first 15 bytes of H("svc-v1 rid" ‖ GR), where GR is the gateway's Ed25519 key for one relay. */
export function routingIdOf(crypto: Crypto, relayPublicKey: Uint8Array): RoutingId {
  const hash = crypto.sha256(concatBytes(utf8ToBytes('svc-v1 rid'), relayPublicKey));
  return asRoutingId(hash.subarray(0, ROUTING_ID_BYTES));
}

/** The UTC day of a tag: whole days since 1970. */
export function tagDay(nowMs: number): number {
  return Math.floor(nowMs / DAY_MS);
}

/**
 * tag = X(psk, "svc-v1 relay tag", rid ‖ u32 day, 16). Only the two who share the psk can compute it; another one every
 * day and for every relay keeps relays from following a device for longer or comparing notes.
 */
export function deriveRelayTag(
  crypto: Crypto,
  psk: Psk,
  { routingId, day }: { routingId: RoutingId; day: number },
): Uint8Array {
  const context = concatBytes(routingId, encodeU32(day));
  return expandLabel(crypto, psk, { label: 'svc-v1 relay tag', context, length: TAG_BYTES });
}
