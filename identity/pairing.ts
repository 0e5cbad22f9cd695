/**
 * What a device and its gateway tell each other inside a pairing session, both as JSON: who the device says it is, and
 * what it gets. Sent to the inner path `/pair/confirm`.
 */
import { findBase64url, formatBase64url } from '../channel/base64url.ts';
import { utf8ToBytes } from '../channel/bytes.ts';
import { findJsonObject } from '../channel/json.ts';
import type { Psk } from '../channel/keys.ts';
import { asPsk, asRoutingId, KEY_BYTES, ROUTING_ID_BYTES } from '../channel/keys.ts';
import { isLabel } from './access-claims.ts';
import type { InviteRelay } from './invite-code.ts';

export const CONFIRM_PATH = '/pair/confirm';

/** In its own words: a thief of an invite chooses these too. Each is a text that `isLabel` accepts. */
export interface DeviceDescription {
  readonly name: string;
  /** `linux`, `darwin`, `android`, a browser's name, … */
  readonly platform: string;
  readonly model?: string;
}

/** What makes a device a paired one. */
export interface PairingGrant {
  readonly deviceId: string;
  /** Proves the device in every later handshake, together with its static key. */
  readonly psk: Psk;
  /** The text of its access key, which counts inside its sealed calls and nowhere else. */
  readonly grant: string;
  /** A key for clients that can't use the channel, where the owner wanted one made. */
  readonly bearerKey?: string;
  readonly gatewayName: string;
  /** See `formatGatewayId`. */
  readonly gatewayId: string;
  readonly relays: readonly InviteRelay[];
  /** Where the gateway is in its own network, the likeliest first. */
  readonly urls: readonly string[];
}

export function encodeDeviceDescription({ name, platform, model }: DeviceDescription): Uint8Array {
  return utf8ToBytes(JSON.stringify({ name, platform, model }));
}

export function findDeviceDescription(bytes: Uint8Array): DeviceDescription | undefined {
  const { name, platform, model } = findJsonObject(bytes) ?? {};
  if (!isLabelText(name) || !isLabelText(platform)) return undefined;
  if (model === undefined) return { name, platform };
  return isLabelText(model) ? { name, platform, model } : undefined;
}

function isLabelText(value: unknown): value is string {
  return typeof value === 'string' && isLabel(value);
}

export function encodePairingGrant({ psk, relays, ...rest }: PairingGrant): Uint8Array {
  const shown = relays.map(({ origin, routingId }) => ({ origin, rid: formatBase64url(routingId) }));
  return utf8ToBytes(JSON.stringify({ ...rest, psk: formatBase64url(psk), relays: shown }));
}

export function findPairingGrant(bytes: Uint8Array): PairingGrant | undefined {
  const { deviceId, psk, grant, bearerKey, gatewayName, gatewayId, relays, urls } = findJsonObject(bytes) ?? {};
  const pskBytes = typeof psk === 'string' ? findBase64url(psk) : undefined;
  if (typeof deviceId !== 'string' || typeof grant !== 'string' || pskBytes?.length !== KEY_BYTES) return undefined;
  if (typeof gatewayName !== 'string' || typeof gatewayId !== 'string') return undefined;
  if (bearerKey !== undefined && typeof bearerKey !== 'string') return undefined;
  if (!Array.isArray(relays) || !Array.isArray(urls) || !urls.every((url) => typeof url === 'string')) return undefined;
  const known = relays.map(findRelay);
  if (!known.every((relay) => relay !== undefined)) return undefined;
  return {
    deviceId,
    psk: asPsk(pskBytes),
    grant,
    ...(bearerKey === undefined ? {} : { bearerKey }),
    gatewayName,
    gatewayId,
    relays: known,
    urls,
  };
}

function findRelay(value: unknown): InviteRelay | undefined {
  if (typeof value !== 'object' || value === null || !('origin' in value) || !('rid' in value)) return undefined;
  const { origin, rid } = value;
  const routingId = typeof rid === 'string' ? findBase64url(rid) : undefined;
  if (typeof origin !== 'string' || routingId?.length !== ROUTING_ID_BYTES) return undefined;
  return { origin, routingId: asRoutingId(routingId) };
}
