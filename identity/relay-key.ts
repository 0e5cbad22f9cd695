/**
 * GR: what this gateway is known by at one relay, and nowhere else, so that two relays can't find out that they serve the
 * same one. None is stored: each comes from the master key and the relay's origin.
 *
 *     seed = HKDF-Expand(HKDF-Extract("svc-v1 relay", master key), LP16(origin) ‖ u32 key epoch, 32)
 */
import { ed25519 } from '@noble/curves/ed25519.js';
import { concatBytes, encodeU32, lengthPrefixed, utf8ToBytes } from '../channel/bytes.ts';
import { hkdfExpand, hkdfExtract } from '../channel/hkdf.ts';
import type { RoutingId } from '../channel/keys.ts';
import { nobleCrypto } from '../channel/noble.ts';
import { routingIdOf } from '../channel/relay-tag.ts';
import type { MasterKey } from './secret-keys.ts';
import { SECRET_BYTES } from './secret-keys.ts';

export interface RelayKey {
  /** Ed25519 (RFC 8032), 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly routingId: RoutingId;
  /** @returns 64 bytes */
  readonly sign: (message: Uint8Array) => Uint8Array;
}

// It draws nothing here.
const crypto = nobleCrypto((length) => new Uint8Array(length));

/** @param origin `scheme://host[:port]`, lower case. @param keyEpoch another one is another key, for an owner who wants one */
export function deriveRelayKey(master: MasterKey, origin: string, keyEpoch = 0): RelayKey {
  const info = concatBytes(lengthPrefixed(utf8ToBytes(origin)), encodeU32(keyEpoch));
  const seed = hkdfExpand(crypto, hkdfExtract(crypto, utf8ToBytes('svc-v1 relay'), master), info, SECRET_BYTES);
  const publicKey = ed25519.getPublicKey(seed);
  return {
    publicKey,
    routingId: routingIdOf(crypto, publicKey),
    sign: (message) => ed25519.sign(message, seed),
  };
}
