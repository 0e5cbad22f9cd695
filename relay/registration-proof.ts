/** Whether a gateway owns the routing id that it asks for. */
import { createPublicKey, verify } from 'node:crypto';
import type { Registration } from './wire/frame.ts';
import { registrationMessage, type RegistrationContext } from './wire/registration.ts';

/** SubjectPublicKeyInfo of an Ed25519 key (RFC 8410 §4), up to the key itself. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** @param context our own origin, and the nonce that this connection was given */
export function isProven(
  context: RegistrationContext,
  registration: Registration & { signature: Uint8Array },
): boolean {
  try {
    const der = Buffer.concat([SPKI_PREFIX, registration.publicKey]);
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
    return verify(null, registrationMessage(context, registration), key, registration.signature);
  } catch {
    // A key that is no point of the curve.
    return false;
  }
}
