/** rid: under which a gateway is reached through one relay. Whoever holds GR's secret half owns it; no account is needed. */
import { createHash } from 'node:crypto';
import { ROUTING_ID_BYTES } from './wire/frame.ts';
import { ROUTING_ID_LABEL } from './wire/registration.ts';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';

/** rid = the first 15 bytes of SHA-256("svc-v1 rid" ‖ GR). */
export function routingIdOf(publicKey: Uint8Array): Uint8Array {
  return createHash('sha256').update(ROUTING_ID_LABEL).update(publicKey).digest().subarray(0, ROUTING_ID_BYTES);
}

/** 24 characters of base32 (RFC 4648 §6) in lower case; 120 bits need no padding. */
export function formatRoutingId(routingId: Uint8Array): string {
  let text = '';
  let [value, bits] = [0, 0];
  for (const byte of routingId) {
    value = (value << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(value >>> (bits - 5)) & 31];
    value &= 0xff;
  }
  return text;
}
