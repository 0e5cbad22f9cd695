/**
 * What a gateway signs to hold a routing id, and nothing else that it signs with this key:
 *
 *     sig = Ed25519(gr, "svc-v1 relay register" ‖ LP16(origin) ‖ nonce 32 ‖ u64 epoch ‖ u16 caps ‖ LP16(admission))
 *
 * Each side takes the origin that it was configured with, never the one that the other side names: so a proof that was
 * made for one relay is worth nothing at another. The nonce makes it good for one connection.
 */
import { FieldWriter } from './fields.ts';
import { NONCE_BYTES, type Registration } from './frame.ts';

const LABEL = labelBytes('svc-v1 relay register');

/** Begins the hash that makes a routing id of GR: rid = the first 15 bytes of SHA-256("svc-v1 rid" ‖ GR). */
export const ROUTING_ID_LABEL = labelBytes('svc-v1 rid');

function labelBytes(label: string): Uint8Array {
  return Uint8Array.from(label, (character) => character.codePointAt(0) ?? 0);
}

export interface RegistrationContext {
  readonly origin: string;
  readonly nonce: Uint8Array;
}

export function registrationMessage(
  { origin, nonce }: RegistrationContext,
  { epoch, caps, admission }: Omit<Registration, 'publicKey'>,
): Uint8Array {
  const length = LABEL.length + 2 + origin.length + NONCE_BYTES + 8 + 2 + 2 + admission.length;
  const message = new Uint8Array(length);
  new FieldWriter(message, 0)
    .bytes(LABEL)
    .text(origin)
    .fixed(nonce, NONCE_BYTES)
    .u53(epoch)
    .u16(caps)
    .prefixed(admission);
  return message;
}

/** The port that goes without saying. */
const USUAL_PORT = { ws: 80, wss: 443 } as const;

/** `ws://` or `wss://`, a host in lower case, and a port that is not the scheme's own: the one form of an origin. */
export function isRelayOrigin(text: string): boolean {
  const form = /^(wss?):\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?$/u;
  const [, scheme, port] = form.exec(text) ?? [];
  return text.length <= 255 && scheme !== undefined && Number(port) !== USUAL_PORT[scheme === 'ws' ? 'ws' : 'wss'];
}

/** What a relay is known by that has no other name. @param host an IPv6 address without brackets */
export function relayOriginAt(scheme: 'ws' | 'wss', host: string, port: number): string {
  const origin = `${scheme}://${host.includes(':') ? `[${host}]` : host}`;
  return port === USUAL_PORT[scheme] ? origin : `${origin}:${port}`;
}
