/**
 * One type per role of a 32-byte (or 16-byte) string, so that the compiler keeps them apart: a traffic secret can't be
 * passed where a call key belongs, nor a session id where an invite id does. At run time each is a plain Uint8Array.
 */

declare const role: unique symbol;
type Role<Name extends string> = Uint8Array & { readonly [role]: Name };

/** An X25519 public key (RFC 7748 §5): GS of a gateway, CS of a device, or an ephemeral one. */
export type PublicKey = Role<'public key'>;
/** A pre-shared key as Noise §9 mixes it in: of a paired device (psk2), or of one pairing (psk0). */
export type Psk = Role<'psk'>;
/** PRKc or PRKs: what the call keys of one direction of one session are derived from. */
export type TrafficSecret = Role<'traffic secret'>;
/** The ChaCha20-Poly1305 key of one direction of one call. */
export type CallKey = Role<'call key'>;
/** The random name of a session on the wire. */
export type SessionId = Role<'session id'>;
/** What a QR code hands over; everything else about an invite is derived from it. */
export type InviteSecret = Role<'invite secret'>;
/** rid: under which a gateway is reached through one relay. */
export type RoutingId = Role<'routing id'>;

/** X25519 keys, pre-shared keys, hashes and everything derived with HKDF for a cipher. */
export const KEY_BYTES = 32;
/** Session ids, invite ids, discovery challenges. */
export const ID_BYTES = 16;
/** 120 bits, so that it is written as 24 base32 characters without padding. */
export const ROUTING_ID_BYTES = 15;

function ofRole<Key extends Uint8Array>(bytes: Uint8Array, isRole: (bytes: Uint8Array) => bytes is Key): Key {
  if (!isRole(bytes)) throw new RangeError(`${bytes.length} bytes are not the length of this key or id`);
  return bytes;
}

/** Each of these checks the length and nothing else. @throws RangeError */
export const asPublicKey = (bytes: Uint8Array): PublicKey =>
  ofRole(bytes, (candidate): candidate is PublicKey => candidate.length === KEY_BYTES);
export const asPsk = (bytes: Uint8Array): Psk =>
  ofRole(bytes, (candidate): candidate is Psk => candidate.length === KEY_BYTES);
export const asTrafficSecret = (bytes: Uint8Array): TrafficSecret =>
  ofRole(bytes, (candidate): candidate is TrafficSecret => candidate.length === KEY_BYTES);
export const asCallKey = (bytes: Uint8Array): CallKey =>
  ofRole(bytes, (candidate): candidate is CallKey => candidate.length === KEY_BYTES);
export const asSessionId = (bytes: Uint8Array): SessionId =>
  ofRole(bytes, (candidate): candidate is SessionId => candidate.length === ID_BYTES);
export const asInviteSecret = (bytes: Uint8Array): InviteSecret =>
  ofRole(bytes, (candidate): candidate is InviteSecret => candidate.length === ID_BYTES);
export const asRoutingId = (bytes: Uint8Array): RoutingId =>
  ofRole(bytes, (candidate): candidate is RoutingId => candidate.length === ROUTING_ID_BYTES);
