/** What this gateway is known by: GS, and the fingerprint that people compare. */
import { x25519 } from '@noble/curves/ed25519.js';
import { formatGatewayId, gatewayIdOf } from '../channel/gateway-id.ts';
import type { PublicKey } from '../channel/keys.ts';
import { asPublicKey } from '../channel/keys.ts';
import { nobleCrypto } from '../channel/noble.ts';
import type { GatewayKey } from './secret-keys.ts';

/** GS, which an invite vouches for. */
export function gatewayPublicKey(gatewayKey: GatewayKey): PublicKey {
  return asPublicKey(x25519.getPublicKey(gatewayKey));
}

/** See `formatGatewayId`. */
export function gatewayFingerprint(gatewayKey: GatewayKey): string {
  const crypto = nobleCrypto((length) => new Uint8Array(length));
  return formatGatewayId(gatewayIdOf(crypto, gatewayPublicKey(gatewayKey)));
}
