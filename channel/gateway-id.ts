/** The name of a gateway for people and logs: the first 16 bytes of H("svc-v1 gw" ‖ GS). No decision rests on it. */
import { bytesToHex } from '@noble/hashes/utils.js';
import { concatBytes, utf8ToBytes } from './bytes.ts';
import type { Crypto } from './crypto.ts';
import type { PublicKey } from './keys.ts';
import { ID_BYTES } from './keys.ts';

export function gatewayIdOf(crypto: Crypto, gatewayKey: PublicKey): Uint8Array {
  return crypto.sha256(concatBytes(utf8ToBytes('svc-v1 gw'), gatewayKey)).subarray(0, ID_BYTES);
}

/** Eight groups of four hexadecimal digits, to be compared by eye. */
export function formatGatewayId(gatewayId: Uint8Array): string {
  return bytesToHex(gatewayId).replaceAll(/(.{4})(?=.)/gu, '$1 ');
}
