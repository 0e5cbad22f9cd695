/**
 * What a handshake is for, and the prologue that binds it to that (Noise rev 34 §6): version, purpose and pairing
 * context are in the handshake hash, so a message made for one can't be used for another. The path (LAN or relay) is not
 * bound, so that one client serves both.
 *
 *     prologue = "svc-secure-v1" ‖ purpose(1) ‖ LP16(context)
 */
import { concatBytes, EMPTY, lengthPrefixed, utf8ToBytes } from './bytes.ts';
import { ID_BYTES } from './keys.ts';

/** `inviteId` and `challenge` are 16 bytes. */
export type Purpose =
  | { readonly kind: 'session' }
  | { readonly kind: 'invite'; readonly inviteId: Uint8Array }
  | { readonly kind: 'discovery'; readonly challenge: Uint8Array };

export type PurposeKind = Purpose['kind'];

const PURPOSE_CODE: Readonly<Record<PurposeKind, number>> = { session: 1, invite: 2, discovery: 3 };

/** @throws RangeError if the context has not its 16 bytes */
export function prologueOf(purpose: Purpose): Uint8Array {
  const code = Uint8Array.of(PURPOSE_CODE[purpose.kind]);
  return concatBytes(utf8ToBytes('svc-secure-v1'), code, lengthPrefixed(contextOf(purpose)));
}

function contextOf(purpose: Purpose): Uint8Array {
  if (purpose.kind === 'session') return EMPTY;
  const context = purpose.kind === 'invite' ? purpose.inviteId : purpose.challenge;
  if (context.length !== ID_BYTES) throw new RangeError(`the context of a pairing has ${ID_BYTES} bytes`);
  return context;
}
