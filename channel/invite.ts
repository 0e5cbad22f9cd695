/**
 * What both sides derive from the secret of an invite:
 *
 *     secret'   = HKDF-Extract("svc-v1 invite", secret)
 *     inviteId  = X(secret', "svc-v1 invite id",  "",  16)
 *     invitePsk = X(secret', "svc-v1 invite psk", "",  32)
 *     inviteTag = X(secret', "svc-v1 invite tag", rid, 16)
 */
import { EMPTY, utf8ToBytes } from './bytes.ts';
import type { Crypto } from './crypto.ts';
import { expandLabel, hkdfExtract } from './hkdf.ts';
import type { InviteSecret, Psk, RoutingId } from './keys.ts';
import { asPsk, ID_BYTES, KEY_BYTES } from './keys.ts';
import { TAG_BYTES } from './relay-tag.ts';

export interface InviteKeys {
  /** Sent in the clear to say which invite is meant. */
  readonly inviteId: Uint8Array;
  /** psk0 of the pairing handshake. */
  readonly psk: Psk;
  /** What opens the relay's way to the gateway, for pairing only; relays can't compare theirs. */
  readonly relayTag: (routingId: RoutingId) => Uint8Array;
}

export function deriveInviteKeys(crypto: Crypto, secret: InviteSecret): InviteKeys {
  const prk = hkdfExtract(crypto, utf8ToBytes('svc-v1 invite'), secret);
  const derive = (label: string, context: Uint8Array, length: number): Uint8Array =>
    expandLabel(crypto, prk, { label, context, length });
  return {
    inviteId: derive('svc-v1 invite id', EMPTY, ID_BYTES),
    psk: asPsk(derive('svc-v1 invite psk', EMPTY, KEY_BYTES)),
    relayTag: (routingId) => derive('svc-v1 invite tag', routingId, TAG_BYTES),
  };
}
